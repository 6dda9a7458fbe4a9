"""Writing what nodes read of the policy into a folder, and signing it with a key of Ed25519."""

import base64
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings
from django.db import transaction

from policies import permissions
from policies.engine import bundle
from policies.services.aup import aup_in_force
from portal.core import audit, clock
from portal.core.errors import Invalid
from principals.actors import Actor

_KEY = "openssl genpkey -algorithm ed25519 makes one; keep it off the web host, mode 0600."


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the policy, the version of the bundle, and whether anything changed."""

    policy: str
    serial: int
    changed: bool


def export_policy(*, actor: Actor, folder: Path) -> Exported:
    """Write the files of the policy in force, unsigned. Where they stand there already nothing is touched."""
    permissions.require(actor, "aup.publish")
    version = aup_in_force()
    policy, url = version.policy, settings.BASE_URL
    files = bundle.make_files(policy, url=url)
    before = _read(folder / bundle.MANIFEST)
    serial = bundle.serial_of(before)
    if serial and before == bundle.make_manifest(policy, files, serial=serial, url=url) and _stand(folder, files):
        return Exported(version.version, serial, changed=False)
    serial = bundle.next_serial(int(clock.now().timestamp()), serial)
    with transaction.atomic():
        audit.record(
            actor=actor.ref, verb="aup.export_bundle", object_kind="aup", object_id=version.pk,
            object_label=version.version, after={"serial": serial, "digest": version.digest},
        )  # fmt: skip
    (folder / bundle.SIGNATURE).unlink(missing_ok=True)  # it is of another manifest
    for name, content in files.items():
        _write(folder / name, content)
    _write(folder / bundle.MANIFEST, bundle.make_manifest(policy, files, serial=serial, url=url))
    return Exported(version.version, serial, changed=True)


def sign_policy(*, folder: Path, key_file: Path) -> None:
    """Sign the manifest in a folder. It asks no database: it may run where the portal does not."""
    manifest = _read(folder / bundle.MANIFEST)
    if not bundle.serial_of(manifest):
        raise Invalid(f"{folder} holds no manifest.", code="manifest_missing", remedy="Export the policy there first.")
    signature = _key(key_file).sign(manifest)
    _write(folder / bundle.SIGNATURE, base64.b64encode(signature) + b"\n")


def _key(path: Path) -> Ed25519PrivateKey:
    try:
        if path.stat().st_mode & 0o077:
            raise Invalid(f"Others can read {path}.", code="key_readable", remedy=f"Run: chmod 600 {path}")
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.", code="key_missing", remedy=_KEY) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Invalid(f"{path} is no key in PEM without a password.", code="key_form", remedy=_KEY) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Invalid(f"{path} is no key of Ed25519.", code="key_form", remedy=_KEY)
    return key


def _stand(folder: Path, files: dict[str, bytes]) -> bool:
    return all(_read(folder / name) == content for name, content in files.items())


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.new")
    half.unlink(missing_ok=True)  # of an export that was ended; or a link, which would lead the text elsewhere
    with half.open("xb") as file:
        file.write(content)
    half.chmod(0o644)
    half.replace(path)
