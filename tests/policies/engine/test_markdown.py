"""Markdown of the policy: what it draws, and all that it must not."""

import pytest

from policies.engine.markdown import to_html


def test_it_draws_headings_below_the_pages_own_and_plain_links() -> None:
    html = to_html("# Rules\n\n*Be* kind, see [the page](https://example.org/a) or [here](/aup/).")
    assert "<h3>Rules</h3>" in html
    assert "<em>Be</em>" in html
    assert 'href="https://example.org/a" rel="noopener noreferrer nofollow"' in html
    assert 'href="/aup/"' in html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<div onclick=x>\n\nb\n\n</div>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](//elsewhere.example.org)",
        "[x](vbscript:x)",
        "![x](https://elsewhere.example.org/p.png)",
        "<https://example.org/\"onmouseover=alert(1)>",
        "[x]: javascript:alert(1)\n\n[x]",
        "`<script>`",
        "```<b>\n<script>\n```",
    ],
    ids=range(13),
)  # fmt: skip
def test_it_lets_nothing_through_that_acts(hostile: str) -> None:
    html = to_html(hostile)
    for sign in ("<script", "<img", "<div", 'href="javascript', 'href="data', 'href="vbscript', 'href="//', '" on'):
        assert sign not in html.lower()
