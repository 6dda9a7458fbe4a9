"""Lines of the logs of each kind of gateway: a request, a line that is none, or one that cannot be read.

- Open OnDemand: Apache's or nginx's access log, whose user is the one signed in; and the line that its own hook writes
  for each request (`log_hook="ood"`, mod_ood_proxy/lib/logger.lua), which names the login that the user was mapped to.
- JupyterHub: the hub's own log, `200 GET /hub/api/users/ada (ada@10.0.0.1) 12.34ms`, which names no program and so
  tells no agent from a person; and the access log of the proxy before it, which does.
- FirecREST: the tracing log of v2 (`f7t_v2_tracing_log`, JSON or text), and the access log of the proxy before v1.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple, TypeAlias

from telemetry.engine.gateways.access import Access, Fault, read_combined, read_fields, time_of
from telemetry.engine.gateways.agents import Client, client_of
from telemetry.engine.gateways.paths import act_of

LONGEST_LINE: Final = 16_384
# What is said of a line that is set aside, in place of what it says.
SET_ASIDE: Final = {
    "form": "No line of this kind of gateway’s log: see --kind.",
    "json": "Cannot be read as JSON.",
    "time": "Its time cannot be read.",
    "status": "Its status is none of HTTP’s.",
    "names_twice": "A name stands twice: one was written by whoever asked.",
    "too_long": f"Longer than {LONGEST_LINE:,} characters.",
    "too_old": "Older than 25 days: its minutes are not kept any more.",
    "future_date": "Ahead of the portal’s clock: see --zone.",
    "other_realm": "Its login name has another realm: see --realm.",
    "user_invalid": "Its user is no login name.",
}
_PAIR: Final = re.compile(r'(?<!\w)(\w{1,40})="([^"]*)"')
_HOOK: Final = frozenset({"log_time", "local_user", "req_method", "req_uri", "req_status", "req_user_agent"})
_HUB: Final = re.compile(
    r"\[\w (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) JupyterHub log:\d+\] (?P<status>\d{3}) (?P<method>[A-Z]+) "
    r"(?P<target>\S+)(?: (?:→|->) \S+)? \((?P<user>.*)@[^@()]*\) [\d.]+ms"
)
# What nobody gets at without a right to that server; a page that only sends one to sign in names anybody.
_HUB_USER: Final = re.compile(
    r"/(?:user/([^/?]+)/(?:api/[^/?]+|lab|terminals|files)|hub/api/users/([^/?]+))(?=[/?]|\Z)"
)
_TRACING: Final = "f7t_v2_tracing_log"
_TEXT_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d+)")
_LEVELS: Final = re.compile(r"\[[A-Z] ")


class Request(NamedTuple):
    """A request of somebody: when (UTC epoch seconds), under which login, with which program, for what (one word)."""

    at_s: int
    user: str
    client: Client
    act: str
    system: str = ""  # of FirecREST, which serves several clusters


class Passed(NamedTuple):
    """A line that is no request of anybody; `reason` says which sort."""

    reason: str


class Unread(NamedTuple):
    """A line that cannot be read, and why: a word."""

    reason: str


Reading: TypeAlias = Request | Passed | Unread


def read_line(kind: str, line: str, *, zone: tzinfo) -> Reading:
    """Read a line of the log of a gateway of a kind (`KINDS`); `zone` is that of moments which tell none."""
    line = line.strip("\r\n")
    if not line.strip():
        return Passed("empty")
    if len(line) > LONGEST_LINE:
        return Unread("too_long")
    try:
        return _READERS[kind](line, zone)
    except Fault as fault:
        return Unread(str(fault))


def _request(kind: str, access: Access, system: str = "") -> Reading:
    if access.status == 401:
        return Passed("not_signed_in")  # the name is what somebody said, and was refused
    if not access.user:
        return Passed("no_user")
    act = act_of(kind, access.method, access.target, access.status)
    return Request(access.at_s, access.user, client_of(access.user_agent), act, system)


def _ondemand(line: str, zone: tzinfo) -> Reading:
    if 'log_hook="ood"' in line:
        return _request("ondemand", read_fields(_hook_fields(line), zone))
    if access := _web_access(line, zone):
        return _request("ondemand", access)
    return Unread("form")


def _hook_fields(line: str) -> Mapping[str, Any]:
    """Read the fields of a line of OnDemand's hook, which does not escape what stands between quotation marks.

    A name that is there twice was written by whoever asked, perhaps in their user agent. Errors: `Fault`.
    """
    pairs = [(name, value) for name, value in _PAIR.findall(line) if name in _HOOK]
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Fault("names_twice")
    return fields


def _web_access(line: str, zone: tzinfo) -> Access | None:
    if line.startswith("{"):
        return read_fields(_json(line), zone)
    return read_combined(line)


def _json(text: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise Fault("json") from None
    if not isinstance(fields, dict):
        raise Fault("json")
    return fields


def _jupyterhub(line: str, zone: tzinfo) -> Reading:
    if found := _HUB.match(line):
        at_s = time_of(found["at"], zone)
        return _request(
            "jupyterhub", Access(at_s, found["user"], found["method"], found["target"], int(found["status"]), "")
        )
    if _LEVELS.match(line):
        return Passed("not_a_request")
    if line[0] in " \t}" or line.startswith(("Traceback ", "During handling")):
        return Passed("continuation")
    access = _web_access(line, zone)
    if access is None:
        return Unread("form")
    is_answered = access.status == 101 or 200 <= access.status < 300
    if not access.user and is_answered and (named := _HUB_USER.search(access.target)):
        access = access._replace(user=named[1] or named[2])
    return _request("jupyterhub", access)


def _firecrest(line: str, zone: tzinfo) -> Reading:
    if access := read_combined(line):
        return _request("firecrest", access)
    at = line.find("{")
    if at < 0:
        return Passed("other_log") if "uvicorn" in line or "INFO" in line else Unread("form")
    fields = dict(_packet(line[at:]))
    if isinstance(fields.get("request"), dict):
        fields = _of_proxy(fields)
    elif _TRACING not in line and "endpoint" not in fields:
        return Passed("other_log")
    if _text(fields, "message").startswith("Requesting"):
        return Passed("begun")  # its answer has a line of its own
    if "asctime" not in fields and (told := _TEXT_TIME.search(line[:at])):
        fields["asctime"] = told[1]
    return _request("firecrest", read_fields(fields, zone), _text(fields, "system_name")[:100])


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _packet(text: str) -> Mapping[str, Any]:
    """Read the fields of a line: JSON, or as Python prints a dict, where the log's formatter is the default one."""
    if not text.startswith("{'"):
        return _json(text)
    try:
        fields = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Fault("json") from None
    if not isinstance(fields, dict):
        raise Fault("json")
    return fields


def _of_proxy(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line of Kong's file-log, the gateway that v1 is served behind, by our names."""
    request, response, consumer = (_part(fields, name) for name in ("request", "response", "consumer"))
    headers = _part(request, "headers")
    at = fields.get("started_at")
    if not isinstance(at, int):
        raise Fault("time")
    return {
        "user": consumer.get("username"), "method": request.get("method"), "uri": request.get("uri"),
        "status": response.get("status"), "user_agent": headers.get("user-agent"),
        "time": _iso_of(at), "system_name": headers.get("x-machine-name", ""),
    }  # fmt: skip


def _part(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = fields.get(name)
    return part if isinstance(part, dict) else {}


def _iso_of(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise Fault("time") from None


_READERS: Final[Mapping[str, Callable[[str, tzinfo], Reading]]] = {
    "ondemand": _ondemand, "jupyterhub": _jupyterhub, "firecrest": _firecrest,
}  # fmt: skip
KINDS: Final = tuple(_READERS)
