"""The settings of a collector: a TOML file that its operator writes. Every fault is told with a code and a remedy."""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from portal.cli import client
from portal.cli.collect import FORMS
from portal.cli.files import Unusable
from principals.engine.harnesses import known_harnesses
from principals.engine.recognition import Signature, markers_of, read_signatures, signatures
from telemetry.engine.collector.logins import JOURNAL, AgentKey

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_STUDY = re.compile(r"[a-z0-9-]{1,64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLACES = frozenset({"login", "job", "agent_host"})
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_WHOSE = re.compile(r"([a-z0-9-]{1,32})(?:/[a-z0-9-]{1,40})?")
_TABLE_KEYS = frozenset({"executables", "packages", "folders", "passing", "markers"})


@dataclass(frozen=True)
class Config:
    """Settings by the names that they have in the file."""

    portal: str = ""
    cluster: str = ""
    host: str = ""
    token_file: str = "/etc/gatehouse/collect.token"  # noqa: S105 - a path
    spool: str = "/var/lib/gatehouse-collect"
    spool_mb: int = 256
    user: str = "gatehouse"
    kill_file: str = "/etc/gatehouse/collect.off"
    polling_interval_s: float = 30
    study: str = ""
    harnesses: str = ""
    records: str = ""
    records_from: str = ""
    place: str = "login"
    environment: bool = False
    ssh_log: str = ""
    agent_keys: dict[str, str] = field(default_factory=dict)

    # Both are read once, while we may read what the operator's file names.
    @cached_property
    def markers(self) -> tuple[tuple[str, str], ...]:
        """The variables to look for in environments, each with its harness. Errors: `Unusable`."""
        return markers_of(self.signatures or signatures()) if self.environment else ()

    @cached_property
    def keys(self) -> dict[str, AgentKey]:
        """The keys of SSH that are agents' alone, by fingerprint."""
        return {name: AgentKey(*whose.split("/", 1)) for name, whose in self.agent_keys.items()}

    @cached_property
    def signatures(self) -> tuple[Signature, ...] | None:
        """How harnesses are recognised, the site's ways before ours; None for ours alone. Errors: `Unusable`."""
        return (*_signatures_of(Path(self.harnesses)), *signatures()) if self.harnesses else None


def read(path: Path) -> Config:
    """Read a file of settings. Errors: `Unusable`."""
    data = _toml(path)
    known = {each.name: each for each in fields(Config)}
    for name, value in data.items():
        if name not in known:
            raise Unusable(f"{path}: there is no setting {name!r} [unknown_setting]\nThere are: {', '.join(known)}.")
        default = _default(name)
        wanted = (int, float) if name == "polling_interval_s" else type(default)
        if not isinstance(value, wanted) or isinstance(value, bool) != isinstance(default, bool):
            raise Unusable(f"{path}: {name} is of the wrong kind [wrong_kind]\nWrite it as in {_example(name)}.")
    config = Config(**data)
    for test, told in _TESTS:
        if not test(config):
            raise Unusable(f"{path}: {told}")
    return config


def _default(name: str) -> Any:
    return getattr(Config(), name)


def _example(name: str) -> str:
    default = _default(name)
    if isinstance(default, dict):
        return f'a table, [{name}], with lines as "SHA256:…" = "claude-code"'
    return f'{name} = "{default or "text"}"' if isinstance(default, str) else f"{name} = {default}".lower()


def _toml(path: Path) -> dict[str, Any]:
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


def _signatures_of(path: Path) -> tuple[Signature, ...]:
    tables = _toml(path).get("recognise", {})
    if not isinstance(tables, dict) or not tables:
        raise Unusable(f"{path}: there is no [recognise.NAME] in it [no_harness]\nAdd one, or leave `harnesses` out.")
    for slug, table in tables.items():
        if slug not in known_harnesses():
            raise Unusable(
                f"{path}: the portal knows no harness {slug!r} [unknown_harness]\n"
                f"Say as which it counts: {', '.join(known_harnesses())}."
            )
        is_table = isinstance(table, dict) and table.keys() <= _TABLE_KEYS
        if not is_table or not all(isinstance(words, str) for words in table.values()):
            raise Unusable(
                f"{path}: [recognise.{slug}] holds something else than {', '.join(sorted(_TABLE_KEYS))} [bad_harness]\n"
                'Give each as one text, words parted by spaces: executables = "our-agent".'
            )
        if not all(_VARIABLE.fullmatch(name) for name in table.get("markers", "").split()):
            raise Unusable(
                f"{path}: [recognise.{slug}] has a marker that is no variable's name [bad_marker]\n"
                'Give names alone, without values: markers = "OUR_AGENT".'
            )
    return read_signatures(tables)


def _is_whose(whose: object) -> bool:
    found = _WHOSE.fullmatch(whose) if isinstance(whose, str) else None
    return found is not None and found[1] in known_harnesses()


def _is_safe_address(config: Config) -> bool:
    try:
        parts = urlsplit(config.portal)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in client.LOOPBACK)
    return bool(parts.hostname) and is_plain and is_safe


def _are_paths(config: Config) -> bool:
    log = "" if config.ssh_log == JOURNAL else config.ssh_log
    optional = [text or "/" for text in (config.harnesses, config.records_from, log)]
    given = [config.token_file, config.spool, config.kill_file, *optional]
    return all(text.startswith("/") and text.isprintable() for text in given)


_TESTS: tuple[tuple[Callable[[Config], bool], str], ...] = (
    (
        _is_safe_address,
        'portal is not the address of one [portal_address]\nGive it as portal = "https://gatehouse.example.org"; '
        "http is for this machine alone, for a token goes there.",
    ),
    (
        lambda it: bool(_NAME.fullmatch(it.cluster)),
        'cluster names none [cluster_name]\nGive the name that the portal knows it by: cluster = "aster".',
    ),
    (
        lambda it: not it.host or bool(_NAME.fullmatch(it.host)),
        "host is no name of a node [host_name]\nLeave it out: the node knows its name.",
    ),
    (
        lambda it: not it.study or bool(_STUDY.fullmatch(it.study)),
        'study is no name [study_name]\nGive the one that the portal has, or "" where none runs.',
    ),
    (
        lambda it: 1 <= it.spool_mb <= 65_536,
        "spool_mb is none that makes sense [spool_size]\nGive megabytes, as spool_mb = 256.",
    ),
    (
        lambda it: 1 <= it.polling_interval_s <= 3600,
        "polling_interval_s is none that makes sense [polling_interval]\nGive the seconds that the site wants between "
        "two queries of the scheduler, from 1 to 3600.",
    ),
    (
        lambda it: bool(_NAME.fullmatch(it.user)) and it.user != "root",
        'user is nobody to run as [user_name]\nName an account without rights: user = "gatehouse".',
    ),
    (
        lambda it: it.place in _PLACES,
        'place is none that a node can be [place_name]\nGive "login", "job" for a compute node, or "agent_host" where '
        "agents alone work; jobs, and what comes by SSH, are told from it by themselves.",
    ),
    (
        _are_paths,
        "a file or folder is named by no full path [relative_path]\nBegin token_file, spool, kill_file, harnesses, "
        'records_from and ssh_log (unless it is "journal") with a slash.',
    ),
    (
        lambda it: not (it.ssh_log and it.records),
        "ssh_log is read beside our own looking alone [ssh_log_records]\nLeave ssh_log or records out.",
    ),
    (
        lambda it: bool(it.ssh_log) or not it.agent_keys,
        'agent_keys are known by what sshd logs [agent_keys_unheard]\nSay where that is: ssh_log = "journal".',
    ),
    (
        lambda it: all(_FINGERPRINT.fullmatch(name) and _is_whose(whose) for name, whose in it.agent_keys.items()),
        "agent_keys holds what is no key, or nobody's [bad_agent_key]\nGive each as ssh-keygen -l prints it, with a "
        "harness that the portal knows, and after a slash a registered agent: "
        '"SHA256:…" = "claude-code/okafor-docking".',
    ),
    (
        lambda it: it.records in ("", *FORMS),
        f"records names no form that is read [records_form]\nGive one of {', '.join(FORMS)}, or leave it out.",
    ),
)
