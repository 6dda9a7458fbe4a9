"""Checking a signature by Ed25519 (RFC 8032, section 5.1.7) with the standard library alone, for nodes without more.

It only checks: nothing secret passes through it, so its time may depend on what it is given. Signing is done elsewhere.
"""

import base64
import binascii
import hashlib
from typing import Final

_P: Final = 2**255 - 19
_Q: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P
_ROOT: Final = pow(2, (_P - 1) // 4, _P)
_SPKI: Final = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: how a public key begins
_BEGIN, _END = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"
_Point = tuple[int, int, int, int]


def read_public_key(pem: str) -> bytes:
    """Return the 32 bytes of a public key in PEM. Raises `ValueError` for anything else."""
    lines = [line.strip() for line in pem.strip().splitlines()]
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
        raise ValueError("no public key in PEM")
    try:
        der = base64.b64decode("".join(lines[1:-1]), validate=True)
    except binascii.Error as error:
        raise ValueError("no public key in PEM") from error
    if len(der) != len(_SPKI) + 32 or not der.startswith(_SPKI):
        raise ValueError("no key of Ed25519")
    return der[len(_SPKI) :]


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Say whether a signature is that of the key over the message."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, early = _point(public), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or early is None or scalar >= _Q:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _Q
    return _same(_times(scalar, _BASE), _add(early, _times(challenge, key)))


def _point(packed: bytes) -> _Point | None:
    y = int.from_bytes(packed, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x = _x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _x_of(y: int, sign: int) -> int | None:
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    if square == 0:
        return None if sign else 0
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P:
        return None
    return _P - x if (x & 1) != sign else x


def _add(one: _Point, other: _Point) -> _Point:
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % _P, (one[1] + one[0]) * (other[1] + other[0]) % _P
    c, d = 2 * one[3] * other[3] * _D % _P, 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _times(scalar: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point, scalar = _add(point, point), scalar >> 1
    return result


def _same(one: _Point, other: _Point) -> bool:
    return (one[0] * other[2] - other[0] * one[2]) % _P == 0 and (one[1] * other[2] - other[1] * one[2]) % _P == 0


_BASE_Y: Final = 4 * pow(5, -1, _P) % _P
_BASE_X: Final = _x_of(_BASE_Y, 0) or 0
_BASE: Final[_Point] = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P)
