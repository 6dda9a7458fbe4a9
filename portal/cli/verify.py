"""`gatehouse verify`: is the policy in a folder whole, signed by the site's key, and no older than what was used."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from portal.cli.output import replace_file

if TYPE_CHECKING:
    from policies.engine.bundle import Checked


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser("verify", help="check the site's signed policy in a folder before it is used")
    parser.add_argument("folder", metavar="DIR", type=Path, help="where the policy was delivered")
    parser.add_argument("--key", required=True, metavar="FILE", type=Path, help="the site's public key (PEM)")
    parser.add_argument(
        "--state", metavar="FILE", type=Path, help="remember the version here, and refuse an older one from then on"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check and say; 0 where it may be used, 1 where it must not, 2 where a file cannot be read."""
    from policies.engine.bundle import BundleError

    try:
        checked = check_folder(options.folder, options.key, options.state)
        if options.state is not None:
            replace_file(options.state, f"{checked.serial}\n".encode())
    except BundleError as error:
        print(f"{error.fault.sentence} [{error.fault.code}]\n{error.fault.remedy}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or options.folder} cannot be read or written: {error.strerror}", file=sys.stderr)
        print("Name the folder that export_policy filled.", file=sys.stderr)
        return 2
    print(f"Policy {checked.policy}, version {checked.serial}: signed, whole, {len(checked.files)} files.")
    return 0


def check_folder(folder: Path, key_file: Path, state: Path | None = None) -> "Checked":
    """Return the checked policy of a folder. Errors: `BundleError`, `OSError`."""
    from policies.engine.bundle import LARGEST, BundleError, check
    from policies.engine.ed25519 import read_public_key

    _require_nothing_else(folder)

    def read(name: str) -> bytes:
        with (folder / name).open("rb") as file:
            return file.read(LARGEST + 1)

    try:
        key = read_public_key(key_file.read_text(encoding="ascii"))
    except ValueError:
        raise BundleError(
            "key_form", f"{key_file} is no public key of Ed25519.", "openssl pkey -in KEY -pubout writes one."
        ) from None
    return check(read, key=key, seen=_seen(state))


def _require_nothing_else(folder: Path) -> None:
    """Refuse a folder with more in its own folders than is signed: a harness reads whatever lies there."""
    from policies.engine.bundle import FILES, BundleError

    signed = {folder / name for name in FILES}
    for top in {Path(name).parts[0] for name in FILES if "/" in name}:
        for found in (folder / top).rglob("*"):
            if found.is_symlink() or not (found.is_dir() or found in signed):
                name = ascii(str(found.relative_to(folder)))
                raise BundleError("file_unsigned", f"{name} is not of the signed policy.")
            if found.is_file() != (found in signed):
                raise BundleError("file_unsigned", "A folder stands where a file of the policy should.")


def _seen(state: Path | None) -> int:
    if state is None or not state.exists():
        return 0
    text = state.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdecimal() or len(text) > 18:
        from policies.engine.bundle import BundleError

        raise BundleError("state_form", f"{state} holds no version.", "Look why; remove it only if you know.")
    return int(text)
