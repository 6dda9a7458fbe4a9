"""T1: does the portal answer, is it who it should be, and does it know us."""

import time
from collections.abc import Iterator
from typing import Any

from portal.cli import client
from portal.cli.doctor.findings import Finding, State
from portal.cli.doctor.node import Node

CLOCK_OFF_S = 30  # what people notice
CLOCK_WRONG_S = 300  # batches of a collector wait from here on


def look(node: Node) -> Iterator[Finding]:
    """Reach the portal without a token first, then with it."""
    try:
        url = client.portal_url()
        began = time.time()
        answer = client.ask(url, "/readyz")
    except client.PortalUnreachable as error:
        yield Finding(
            1,
            "reach",
            "wrong",
            str(error),
            "Set GATEHOUSE_URL to the portal's address; see that a proxy lets it through.",
        )
        return
    yield _reach(url, answer, named="GATEHOUSE_URL" in node.environ)
    yield _clock(answer.date_s, began, time.time())
    yield from _token()


def _reach(url: str, answer: client.Answer, *, named: bool) -> Finding:
    if answer.status == 503:
        return Finding(
            1, "reach", "wrong", f"{url} answers, and is not ready to serve.", "Tell its operators: /readyz says why."
        )
    if answer.status != 200 or answer.said.get("status") != "ok":
        return Finding(
            1,
            "reach",
            "wrong",
            f"{url} answers {answer.status}, not as a portal does.",
            "Give the portal's own address, without a path; see that no sign-in page of a proxy stands before it.",
        )
    if not named:
        return Finding(
            1, "reach", "missing", f"{url} answers, and GATEHOUSE_URL is not set.", "Set it in the site's profile."
        )
    if url.startswith("http://") and not client.is_loopback(url):
        return Finding(
            1,
            "reach",
            "wrong",
            f"{url} is asked without TLS: the token can be read on its way.",
            "Give an https address.",
        )
    return Finding(1, "reach", "ok", f"{url} answers and is ready.")


def _clock(date_s: float | None, began: float, ended: float) -> Finding:
    if date_s is None:
        return Finding(1, "clock", "unknown", "The portal does not say what time it is.")
    off = max(0.0, date_s - ended, began - (date_s + 1))  # a Date has whole seconds
    if off < CLOCK_OFF_S:
        return Finding(1, "clock", "ok", "This node's clock and the portal's agree.")
    state: State = "wrong" if off > CLOCK_WRONG_S else "missing"
    side = "behind" if date_s > ended else "ahead of"
    return Finding(
        1,
        "clock",
        state,
        f"This node's clock is {off:.0f} s {side} the portal's.",
        "Set both by NTP (chronyc tracking).",
    )


def _token() -> Iterator[Finding]:
    try:
        me = client.get("/me")
    except client.PortalUnreachable as error:
        yield Finding(
            1,
            "token",
            "wrong",
            str(error).splitlines()[0],
            "Register an agent on My lab; its token is shown there, once.",
        )
    except client.PortalRefused as refused:
        said = refused.problem
        yield Finding(
            1,
            "token",
            "wrong",
            f"The portal refuses the token: {said.get('detail') or said.get('title')}",
            said.get("remedy", ""),
        )
    else:
        yield Finding(1, "token", "ok", f"The token is that of {me['agent']} ({me['harness']}), for {me['acts_for']}.")
        yield from (_lack(item) for item in me["missing"])


def _lack(item: dict[str, Any]) -> Finding:
    return Finding(1, f"lacks_{item.get('code', 'something')}", "missing", item["what"], item.get("remedy", ""))
