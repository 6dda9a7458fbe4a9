"""The settings of eventd."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from portal.cli.settings import ADDRESS_TOLD, CLUSTER_TOLD, NAME, is_full_path, is_safe_address, read_settings


@dataclass(frozen=True)
class Config:
    """Settings by the names that they have in the file."""

    portal: str = ""
    cluster: str = ""
    token_file: str = "/etc/gatehouse/eventd.token"  # noqa: S105 - a path
    spool: str = "/var/spool/gatehouse-events"
    keep_days: int = 7
    keep_mb: int = 64


def read(path: Path) -> Config:
    """Read a file of settings. Errors: `Unusable`."""
    return read_settings(path, Config, _TESTS)


_TESTS: tuple[tuple[Callable[[Config], bool], str], ...] = (
    (lambda it: is_safe_address(it.portal), ADDRESS_TOLD),
    (lambda it: bool(NAME.fullmatch(it.cluster)), CLUSTER_TOLD),
    (
        lambda it: is_full_path(it.token_file) and is_full_path(it.spool),
        "a file or folder is named by no full path [relative_path]\nBegin token_file and spool with a slash.",
    ),
    (
        lambda it: 1 <= it.keep_days <= 90 and 1 <= it.keep_mb <= 4096,
        "keep_days or keep_mb is none that makes sense [spool_size]\nGive 1 to 90 days and 1 to 4096 megabytes.",
    ),
)
