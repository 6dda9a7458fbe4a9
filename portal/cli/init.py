"""`gatehouse init`: write the site's rules into a project where its agents read them, and take them out again."""

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

from portal.cli import client
from portal.cli.files import Unusable
from portal.cli.me import refusal
from portal.cli.output import replace_file

BEGIN, END = "<!-- gatehouse:begin", "<!-- gatehouse:end -->"
_BLOCK = re.compile(
    r"^<!-- gatehouse:begin[^\n]*\n.*?^<!-- gatehouse:end -->[^\S\n]*(?:\n|\Z)", re.MULTILINE | re.DOTALL
)
_HEAD = f"{BEGIN}: written by `gatehouse init`, change nothing inside -->"
LARGEST = 64 * 1024
LARGEST_FILE = 4 * 1024 * 1024


class _Found(NamedTuple):
    """Where our block begins, with the empty lines above it, and where it ends."""

    start: int
    end: int


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser("init", help="write the site's rules for agents into a project's AGENTS.md")
    parser.add_argument("folder", nargs="?", default=".", type=Path, help="the project; here if not named")
    parser.add_argument("--claude", action="store_true", help="make a CLAUDE.md that includes it, if there is none")
    parser.add_argument("--from", dest="source", metavar="DIR", type=Path, help="take a signed policy, ask no portal")
    parser.add_argument("--key", metavar="FILE", type=Path, help="the site's public key, for --from")
    parser.add_argument("--uninstall", action="store_true", help="take out what this command wrote, and nothing else")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write or take out, and say what changed; 0, 1 where it is refused, 2 where nothing can be read or written."""
    from policies.engine.bundle import BundleError

    if (options.source is None) != (options.key is None):
        print("--from DIR and --key FILE belong together.", file=sys.stderr)
        return 2
    try:
        if not options.folder.is_dir():
            print(f"{options.folder} is no folder. Name the project's.", file=sys.stderr)
            return 2
        changed = _take_out(options.folder) if options.uninstall else _write(options, _rules(options))
    except client.PortalRefused as refused:
        print(refusal(refused.problem), file=sys.stderr)
        return 1
    except BundleError as error:
        print(f"{error.fault.sentence} [{error.fault.code}]\n{error.fault.remedy}", file=sys.stderr)
        return 1
    except (client.PortalUnreachable, Unusable) as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, UnicodeDecodeError) as error:
        name = getattr(error, "filename", None) or options.folder
        print(f"{name} cannot be read or written: {getattr(error, 'strerror', None) or 'no text'}", file=sys.stderr)
        return 2
    print("\n".join(changed) if changed else "Nothing to change.")
    return 0


def _rules(options: argparse.Namespace) -> str:
    """Return the text to include: the portal's, or a checked policy's. It can neither end the block nor be huge."""
    if options.source is not None:
        from portal.cli.verify import check_folder

        content = check_folder(options.source, options.key).files["AGENTS.md"]
    else:
        with client.asking("/site/agents.md") as response:
            content = response.read(LARGEST + 1)
    text = content.decode("utf-8", errors="replace")
    if len(content) > LARGEST or "<!--" in text or any(not each.isprintable() and each != "\n" for each in text):
        raise client.PortalUnreachable("What came is no text of rules; nothing was written. Tell the site's staff.")
    return text.strip()


def _write(options: argparse.Namespace, rules: str) -> list[str]:
    folder: Path = options.folder
    changed = _put(folder / "AGENTS.md", rules)
    claude = folder / "CLAUDE.md"
    if claude.is_symlink() and claude.resolve() == (folder / "AGENTS.md").resolve():
        return changed
    if options.claude or claude.exists():
        changed += _put(claude, "@AGENTS.md")
    return changed


def _put(path: Path, inside: str) -> list[str]:
    before = _read(path)
    block = f"{_HEAD}\n{inside}\n{END}\n"
    line = _line_end(before)
    block = block.replace("\n", line)
    found = _find(path, before)
    if found is None:
        return _replace(path, before, (f"{before.rstrip()}{line * 2}" if before.strip() else "") + block)
    above = before[: found.start]
    return _replace(path, before, (f"{above}{line * 2}" if above else "") + block + before[found.end :])


def _take_out(folder: Path) -> list[str]:
    changed = []
    for path in (folder / "AGENTS.md", folder / "CLAUDE.md"):
        before = _read(path)
        if (found := _find(path, before)) is None:
            continue
        above, below = before[: found.start], before[found.end :]
        kept = f"{above}{_line_end(before)}{below}" if above else below.lstrip("\r\n")
        if kept.strip():
            changed += _replace(path, before, kept)
        else:
            path.unlink()
            changed.append(f"{path} is removed: nothing else stood in it.")
    return changed


def _read(path: Path) -> str:
    """Return what stands in a file, "" where there is none; lines end as they do there. Errors: `Unusable`, `OSError`.

    A project may be anybody's: it could lead us out of itself by a link, or to a pipe that never ends.
    """
    if not path.resolve().is_relative_to(path.parent.resolve()):
        raise Unusable(f"{path} is a link to outside of the project [link_outside]\nReplace it by a file.")
    if not path.exists():
        return ""
    if not path.is_file() or path.stat().st_size > LARGEST_FILE:
        raise Unusable(f"{path} is no file of at most {LARGEST_FILE} bytes [file_kind]\nLook what it is.")
    return path.read_bytes().decode()


def _find(path: Path, text: str) -> "_Found | None":
    """Return where our block stands, with the empty lines above it. Errors: `Unusable` where it is not there once."""
    begins, ends = (len(re.findall(f"^{re.escape(mark)}", text, re.MULTILINE)) for mark in (BEGIN, END))
    found = _BLOCK.search(text)
    if (begins, ends) != (int(found is not None),) * 2 or (found is None and BEGIN in text):
        raise Unusable(f"{path} does not hold our block once and whole [block_broken]\nRemove what is left by hand.")
    return _Found(len(text[: found.start()].rstrip("\r\n")), found.end()) if found else None


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _replace(path: Path, before: str, after: str) -> list[str]:
    if after == before:
        return []
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    replace_file(path, after.encode())
    path.chmod(mode)
    return [f"{path} is {'changed' if before else 'written'}."]
