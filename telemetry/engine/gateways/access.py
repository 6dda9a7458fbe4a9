"""Access logs of web servers: the combined format of Apache and nginx, and the same fields as JSON."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple

_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
# LogFormat "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"" combined; `common` ends behind %b, and
# `vhost_combined` has the server before it.
_COMBINED: Final = re.compile(
    rf'(?:\S+:\d+ )?\S+ \S+ (?P<user>\S+|"[^"]*") \[(?P<at>[^\]]{{20,40}})\] {_QUOTED} (?P<status>\d{{3}}) \S+'
    rf"(?: {_QUOTED} {_QUOTED})?"
)
_APACHE_TIME: Final = re.compile(r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)\Z", re.ASCII)
_LARGEST: Final = 2**63
_FRACTION: Final = re.compile(r"[.,]\d[\d.]*")
_NAMES: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS: Final = {name: number for number, name in enumerate(_NAMES, start=1)}
# What a field may be called, first come first served.
_USER: Final = ("local_user", "remote_user", "username", "user")
_TIME: Final = ("log_time", "time_iso8601", "@timestamp", "timestamp", "time_local", "asctime", "time")
_METHOD: Final = ("req_method", "request_method", "http_request_method", "method")
_TARGET: Final = ("req_uri", "request_uri", "endpoint", "uri", "path", "url")
_STATUS: Final = ("req_status", "status", "http_response_status_code", "status_code", "response_status")
_AGENT: Final = ("req_user_agent", "http_user_agent", "user_agent", "User-Agent", "agent")


class Access(NamedTuple):
    """One request as a log has it. `at_s` is UTC epoch seconds; what the log does not tell is ""."""

    at_s: int
    user: str
    method: str
    target: str
    status: int
    user_agent: str


class Fault(Exception):
    """A line that cannot be read; its only argument is the reason, a word."""


def read_combined(line: str) -> Access | None:
    """Read a line of the combined or the common format; None for another form. Errors: `Fault`."""
    found = _COMBINED.match(line)
    if found is None:
        return None
    method, _, rest = found[3].partition(" ")
    user = found["user"].strip('"')
    agent, at_s = found[6] or "", _apache_time(found["at"])
    return Access(at_s, _said(user), *_asked(method, rest), int(found["status"]), _said(agent))


def _said(text: str) -> str:
    """Return what a field says, where it has more than the dash that stands for nothing."""
    return "" if text == "-" else text


def _asked(method: str, rest: str) -> tuple[str, str]:
    return (method, rest.partition(" ")[0]) if method.isalpha() and method.isupper() else ("", "")


def read_fields(fields: Mapping[str, Any], zone: tzinfo) -> Access:
    """Read a line's fields by name. Errors: `Fault`."""
    method, target = _word(fields, _METHOD), _word(fields, _TARGET)
    request = fields.get("request")
    if not target and isinstance(request, str):
        method, target = _asked(*request.split(" ", 1)) if " " in request else ("", "")
    status, user = _word(fields, _STATUS), _word(fields, _USER)
    if not (status.isascii() and status.isdigit() and len(status) == 3):
        raise Fault("status")
    at_s = time_of(_word(fields, _TIME), zone)
    return Access(at_s, _said(user), method.upper(), target, int(status), _said(_word(fields, _AGENT)))


def _word(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and abs(value) < _LARGEST:  # a longer one cannot be written out
            return str(value)
    return ""


def time_of(text: str, zone: tzinfo) -> int:
    """Read a moment: of Apache, or ISO 8601; one that tells no zone is of `zone`. Errors: `Fault`."""
    if "/" in text:
        return _apache_time(text)
    # `2025-04-15 16:51:57,598` of Python's logging, `…T12:00:00.1234.0Z` of OnDemand's hook: seconds will do.
    text = _FRACTION.sub("", text, count=1)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Fault("time") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())


def _apache_time(text: str) -> int:
    found = _APACHE_TIME.match(text)
    if found is None or found[2] not in _MONTHS:
        raise Fault("time")
    day, year, hour, minute, second, ahead_h, ahead_min = (int(found[place]) for place in (1, 3, 4, 5, 6, 8, 9))
    try:
        at = datetime(year, _MONTHS[found[2]], day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        raise Fault("time") from None
    ahead_s = (ahead_h * 60 + ahead_min) * 60
    return int(at.timestamp()) - (ahead_s if found[7] == "+" else -ahead_s)
