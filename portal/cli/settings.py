"""The settings of a service on a node: a TOML file that its operator writes. Every fault has a code and a remedy."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from portal.cli import client
from portal.cli.files import Unusable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Settings = TypeVar("Settings", bound=DataclassInstance)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
ADDRESS_TOLD = (
    'portal is not the address of one [portal_address]\nGive it as portal = "https://gatehouse.example.org"; '
    "http is for this machine alone, for a token goes there."
)
CLUSTER_TOLD = 'cluster names none [cluster_name]\nGive the name that the portal knows it by: cluster = "aster".'


def read_settings(
    path: Path, kind: "type[Settings]", tests: "Sequence[tuple[Callable[[Settings], bool], str]]"
) -> "Settings":
    """Read a file into a dataclass whose defaults say of which kind a value is; `tests` with what to say of a fault.

    Errors: `Unusable`.
    """
    data = read_toml(path)
    known = {each.name: each for each in fields(kind)}
    for name, value in data.items():
        if name not in known:
            raise Unusable(f"{path}: there is no setting {name!r} [unknown_setting]\nThere are: {', '.join(known)}.")
        default = _default(known[name])
        wanted = (int, float) if known[name].type is float else type(default)
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            raise Unusable(f"{path}: {name} is of the wrong kind [wrong_kind]\nWrite it as in {_example(known[name])}.")
    settings = kind(**data)
    for test, told in tests:
        if not test(settings):
            raise Unusable(f"{path}: {told}")
    return settings


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file of TOML. Errors: `Unusable`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(
            f"{path} cannot be read: {error.strerror} [unreadable]\nWrite it, or name another file by --config."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Unusable(
            f"{path} is no TOML: {error} [no_toml]\nMend it there; https://toml.io shows the form."
        ) from None


def read_token(path: Path, scope: str, whoever: str) -> str:
    """Return the token in a file, of that scope; `whoever` reads it. Errors: `Unusable`."""
    remedy = f"Write the service token there (scope {scope}), mode 0600, for whoever starts {whoever}."
    try:
        return client.read_token(path)
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror} [no_token]\n{remedy}") from None
    except client.PortalUnreachable as error:
        raise Unusable(f"{error} [bad_token]\n{remedy}") from None


def is_safe_address(portal: str) -> bool:
    """Say whether a token may be sent to an address: by https, or to this machine."""
    try:
        parts = urlsplit(portal)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in client.LOOPBACK)
    return bool(parts.hostname) and is_plain and is_safe


def is_full_path(text: str) -> bool:
    """Say whether a text names a file from the root on."""
    return text.startswith("/") and text.isprintable()


def _default(setting: "Field[Any]") -> Any:
    return setting.default if setting.default_factory is MISSING else setting.default_factory()


def _example(setting: "Field[Any]") -> str:
    """Return a line as it may stand in the file; a table says its own, as `example` of its metadata."""
    if "example" in setting.metadata:
        return str(setting.metadata["example"])
    name, default = setting.name, _default(setting)
    return f'{name} = "{default or "text"}"' if isinstance(default, str) else f"{name} = {default}".lower()
