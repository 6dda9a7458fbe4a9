"""One POST to a receiver, within a time that nobody can stretch: no redirect, no proxy, no body of an answer.

By hand and not by a library: what was resolved is what is connected to, and a receiver that answers a byte at a time
runs against the same deadline as one that is silent. No database is touched.
"""

import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from portal.core import clock
from portal.webhooks.hosts import Place
from portal.webhooks.pace import read_retry_after

TIMEOUT_S: Final = 5.0
MAX_HEAD_BYTES: Final = 16 * 1024
_PIECE_BYTES: Final = 16 * 1024
_READ_BYTES: Final = 1024
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: |\r?\n)")
_RETRY_AFTER = re.compile(rb"\nretry-after:([^\r\n]{1,60})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt: a status or none, our own words for it, how long it took, what waiting it asked for."""

    status: int | None
    words: str
    took_s: float = 0.0
    retry_after_s: int | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the receiver has it."""
        return self.status is not None and 200 <= self.status < 300


class _Failed(Exception):
    """An attempt came to nothing; the text says why."""


def post(place: Place, headers: Mapping[str, str], body: bytes, *, timeout_s: float = TIMEOUT_S) -> Answer:
    """Send one request and return what came of it. It never raises for what a network or a receiver does."""
    began = time.monotonic()
    deadline = began + timeout_s
    try:
        with _connect(place, deadline) as connection:
            _send(connection, _request(place, headers, body), deadline)
            head = _read_head(connection, deadline)
        answer = _understand(head)
    except TimeoutError:
        answer = Answer(None, f"No answer within {timeout_s:.0f} s.")
    except ssl.SSLCertVerificationError:
        answer = Answer(None, "Its certificate was not accepted.")
    except ssl.SSLError:
        answer = Answer(None, "No TLS connection could be made.")
    except ConnectionRefusedError:
        answer = Answer(None, "The connection was refused.")
    except socket.gaierror:
        answer = Answer(None, "Its host name was not found.")
    except OSError:
        answer = Answer(None, "The connection failed.")
    except _Failed as error:
        answer = Answer(None, str(error))
    return Answer(answer.status, answer.words, time.monotonic() - began, answer.retry_after_s)


def is_reachable(address: str, *, is_here: bool) -> bool:
    """Say whether an address may be connected to. A host that is not this one's own must not resolve to it.

    Private ranges may: a facility's receivers stand there.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    if is_here:
        return (mapped or found).is_loopback
    carried = _carried(found) if isinstance(found, ipaddress.IPv6Address) else []
    return not any(
        each.is_loopback or each.is_link_local or each.is_multicast or each.is_unspecified or each.is_reserved
        for each in carried or [found]
    )


def _carried(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the IPv4 addresses in an IPv6 address: where a tunnel or a translator of the network would lead."""
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    return [each for each in found if each is not None]


def _connect(place: Place, deadline: float) -> socket.socket:
    found = [entry[4][0] for entry in socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)]
    addresses = [str(address) for address in found if is_reachable(str(address), is_here=place.is_here)]
    if not addresses:
        raise _Failed("Its host name leads to an address that no webhook may go to.")
    for number, address in enumerate(addresses, start=1):
        try:
            plain = socket.create_connection((address, place.port), timeout=_left(deadline))
        except TimeoutError:
            raise
        except OSError:
            if number == len(addresses):
                raise
            continue
        return _secured(plain, place, deadline)
    raise AssertionError("the last address returns or raises")


def _secured(plain: socket.socket, place: Place, deadline: float) -> socket.socket:
    if not place.is_tls:
        return plain
    try:
        plain.settimeout(_left(deadline))
        return _tls().wrap_socket(plain, server_hostname=place.host)
    except BaseException:
        plain.close()
        raise


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _request(place: Place, headers: Mapping[str, str], body: bytes) -> bytes:
    given = {"Host": place.authority, **headers, "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"POST {place.path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("A header holds a line break.")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _send(connection: socket.socket, request: bytes, deadline: float) -> None:
    for start in range(0, len(request), _PIECE_BYTES):
        connection.settimeout(_left(deadline))
        try:
            connection.sendall(request[start : start + _PIECE_BYTES])
        except (BrokenPipeError, ConnectionResetError):
            return  # it may have answered before it had read all, as for a body that it finds too large


def _read_head(connection: socket.socket, deadline: float) -> bytes:
    """Return the head of the answer that counts: those before it (1xx) are passed over, its body is not read on."""
    read = b""
    while True:
        head, end, rest = read.partition(b"\r\n\r\n")
        if end and head.startswith((b"HTTP/1.1 1", b"HTTP/1.0 1")):
            read = rest
            continue
        if end:
            return head + b"\r\n"
        connection.settimeout(_left(deadline))
        piece = connection.recv(_READ_BYTES)
        if not piece or len(read) > MAX_HEAD_BYTES:
            raise _Failed("It closed the connection without an answer." if not read else "Its answer is no HTTP.")
        read += piece


def _understand(head: bytes) -> Answer:
    found = _STATUS.match(head)
    if found is None:
        return Answer(None, "Its answer is no HTTP.")
    status = int(found[1])
    asked = _RETRY_AFTER.search(head)
    waits = read_retry_after(asked[1].decode("latin-1"), now=clock.now()) if asked else None
    return Answer(status, _words_for(status), retry_after_s=waits)


def _words_for(status: int) -> str:
    if 200 <= status < 300:
        return f"Taken, status {status}."
    if 300 <= status < 400:
        return f"It answered {status}, a redirect; none is followed."
    if status == 410:
        return "It answered 410: it is gone for good."
    return f"It answered {status}."


def _left(deadline: float) -> float:
    """Return the seconds left. Errors: `TimeoutError` where none are."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
