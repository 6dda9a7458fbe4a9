"""Which program is behind a request, from its user agent: a known agent, a browser, or nobody knows."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Driver: TypeAlias = Literal["agent", "human", "unknown"]
_LONGEST: Final = 512  # characters of a user agent that are looked at
_COMMENT: Final = re.compile(r"\([^()]*\)")
_PRODUCT: Final = re.compile(r"([A-Za-z][\w.+-]*)(?:/(\S*))?")


class Client(NamedTuple):
    """What a request was made with: by whom it is driven, and the harness's slug, "" where that is not known."""

    driver: Driver
    harness: str = ""


UNKNOWN: Final = Client("unknown")
_PERSON: Final = Client("human")


class _Known(NamedTuple):
    harnesses: dict[str, str]  # by product
    says: frozenset[str]
    mcp: frozenset[str]
    programs: frozenset[str]
    browsers: frozenset[str]


@cache
def _known() -> _Known:
    text = files("telemetry.engine.gateways").joinpath("agents.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    harnesses = {word: slug for slug, words in data["harness"].items() for word in words.split()}
    sets = (frozenset(data[name]["products"].split()) for name in ("says", "mcp", "program", "browser"))
    return _Known(harnesses, *sets)


@cache
def _slugs() -> frozenset[str]:
    return frozenset(_known().harnesses.values())


def client_of(user_agent: str) -> Client:
    """Return what a user agent says of the program behind it. A header proves nothing: whoever asks writes it."""
    known = _known()
    named = list(_products(user_agent[:_LONGEST]))
    for product, version in named:
        if product in known.says and (slug := known.harnesses.get(version, version)) in _slugs():
            return Client("agent", slug)
        if product in known.harnesses:
            return Client("agent", known.harnesses[product])
    products = {product for product, _ in named}
    if products & known.mcp:
        return Client("agent")
    if products & known.programs:
        return UNKNOWN
    return _PERSON if products & known.browsers else UNKNOWN


def _products(user_agent: str) -> list[tuple[str, str]]:
    """Return the products of a user agent, in lower case, each with its version; comments name none but in theirs."""
    outside, inside = _COMMENT.sub(" ", user_agent), " ".join(_COMMENT.findall(user_agent))
    named = [(name.lower(), version.lower()) for name, version in _PRODUCT.findall(outside)]
    # `Claude-User (claude-code/2.1; +https://…)`: of a comment only what has a version is a product.
    return named + [(name.lower(), version.lower()) for name, version in _PRODUCT.findall(inside) if version]
