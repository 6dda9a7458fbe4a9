"""A signed-in person at the demo facility, watched for every message and request."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Request, expect

from portal.demo.cast import PASSWORD
from tests.support.demo import Portal

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
_sessions: dict[tuple[str, str], Any] = {}


@dataclass
class Visit:
    """A page of the portal, with all that its console said and all that it asked of other hosts."""

    page: Page
    portal: Portal
    messages: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(30_000)
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", self._note)

    def _note(self, request: Request) -> None:
        own = (self.portal.url, self.portal.url.replace("http:", "ws:"), "data:", "blob:")
        if not request.url.startswith(own):
            self.elsewhere.append(request.url)

    def open(self, path: str) -> int:
        """Open an address; return its status once its charts are drawn."""
        response = self.page.goto(f"{self.portal.url}{path}")
        expect(self.page.locator(".figure:not([data-drawn])")).to_have_count(0, timeout=60_000)
        return response.status if response else 0

    def axe(self, *rules: str) -> list[tuple[str, list[str]]]:
        """What axe-core finds, by all of its rules or those named: rule, and the elements it is about.

        The page's own policy stays in force: what the driver evaluates is not the page's.
        """
        self.page.evaluate(AXE)
        # Without the rest, which is much and would be sent here.
        options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
        found = self.page.evaluate("(options) => axe.run(options).then((all) => all.violations)", options)
        return [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found]


@contextmanager
def visit(browser: Browser, portal: Portal, login: str = "", **options: Any) -> Iterator[Visit]:
    """Visit as somebody of the demo, or as nobody; each signs in once."""
    key = (portal.url, login)
    if login and key not in _sessions:
        _sessions[key] = _sign_in(browser, portal, login)
    context = browser.new_context(storage_state=_sessions.get(key), **options)
    try:
        yield Visit(context.new_page(), portal)
    finally:
        context.close()


def _sign_in(browser: Browser, portal: Portal, login: str) -> Any:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{portal.url}/sign-in/")
    page.locator("[name=username]").fill(login)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form:has([name=password]) button[type=submit]").click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    state = context.storage_state()
    context.close()
    return state
