"""Markdown of the site's own people as HTML that can do nothing: no HTML of its own, no pictures, plain links only."""

import re
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_LINK: Final = re.compile(r"(?:https?://|mailto:|/(?!/)|#)[^\s]*", re.IGNORECASE)
_DEEPER: Final = 2  # the page's own headings stand above


def to_html(text: str) -> str:
    """Return safe HTML. Raw HTML comes out as the text it is; links go to http, https, mailto or a place here."""
    tokens = _reader().parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _DEEPER)}"
        for child in token.children or ():
            _harden(child)
    html: str = _reader().renderer.render(tokens, _reader().options, {})
    return html


def _harden(token: Token) -> None:
    if token.type == "link_open":
        token.attrSet("rel", "noopener noreferrer nofollow")


@lru_cache(maxsize=1)
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    reader.validateLink = lambda url: bool(_LINK.fullmatch(url))  # type: ignore[method-assign]
    return reader
