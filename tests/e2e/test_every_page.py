"""Every page that staff or a PI can reach: accessible in both themes and widths, quiet, and at home on this host.

The list of pages is the permission table's: a page that is new there is visited here.
"""

import json
import time

import pytest

from tests.e2e.visits import visit
from tests.portal.permission_table import PAGES
from tests.support import demo

pytestmark = [pytest.mark.browser, pytest.mark.outside]
LOGINS = {"nobody": "", "staff": "u0007", "pi": "u0398"}
COLOURS = ("color-contrast", "link-in-text-block")
NOT_PAGES = {"/live/events/"}  # JSON under an address like a page's
# A published report is one page for all, and the longest of all to look through.
SAME_FOR_ALL = {"/reports/{cluster}/{published_month}/"}
# More is on them for a PI than for staff; of all other pages that both see, staff's is the fuller one.
OF_A_PI = ("/my-lab/", "/held/", "/notices/", "/login/device/", "/trials/requests/", "/extensions/", "/webhooks/")


def _visits() -> list[tuple[str, str]]:
    """Role and path of every page: what a GET answers with 200 and whose address ends as a page's does."""
    pages = [
        row
        for row in PAGES
        if row.method == "GET" and row.path.split("?")[0].endswith("/") and row.path not in NOT_PAGES
    ]
    found = [
        (role, row.path)
        for role in ("staff", "pi")
        for row in pages
        if row.expect(role) == 200 and not (role == "pi" and row.path in SAME_FOR_ALL)
    ]
    return found + [("nobody", row.path) for row in pages if row.expect("nobody") == 200 and row.expect("pi") != 200]


def _once_each() -> list[object]:
    """Each page as whoever sees most of it; what the other of both sees is a soak, for it is long."""
    visits = _visits()

    def is_second(role: str, path: str) -> bool:
        other = "staff" if role == "pi" else "pi"
        return (other, path) in visits and path.startswith(OF_A_PI) is (role == "staff")

    return [
        pytest.param(role, path, marks=[pytest.mark.soak] if is_second(role, path) else [], id=f"{role}-{path}")
        for role, path in visits
    ]


@pytest.fixture(scope="module")
def names(facility):
    """What the paths name, in the demo: an unknown name is one for tests/e2e/demo_objects.py."""
    script = "import json; from tests.e2e.demo_objects import objects; print(json.dumps(objects()))"
    made = demo.manage(facility.data, "shell", "--no-imports", "-c", script)
    return json.loads(made.stdout.splitlines()[-1])


def _fits(page, width: int) -> bool:
    """Say whether nothing sticks out at the side, once charts have taken their new width."""
    deadline = time.monotonic() + 10
    while page.evaluate("document.documentElement.scrollWidth") > width:
        if time.monotonic() > deadline:
            return False
        page.wait_for_timeout(100)
    return True


@pytest.mark.parametrize(("role", "path"), _once_each())
def test_a_page_is_accessible_quiet_and_at_home(browser, facility, names, role, path):
    with visit(browser, facility, LOGINS[role], viewport={"width": 1440, "height": 900}) as seen:
        assert seen.open(path.format(**names)) == 200
        seen.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        found = {}
        # Every rule once wide and once narrow; the other theme changes nothing but colours.
        for width, theme, rules in (
            (1440, "light", ()), (1440, "dark", COLOURS), (390, "dark", ()), (390, "light", COLOURS),
        ):  # fmt: skip
            seen.page.set_viewport_size({"width": width, "height": 900})
            seen.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            assert _fits(seen.page, width), (width, theme)
            if violations := seen.axe(*rules):
                found[width, theme] = violations
        assert found == {}
        assert seen.messages == []
        assert seen.elsewhere == []


def test_the_rail_leads_to_pages_that_the_table_knows(browser, facility):
    known = {path.split("?")[0] for _, path in _visits()}
    for login in (LOGINS["staff"], LOGINS["pi"]):
        with visit(browser, facility, login) as seen:
            seen.open("/")
            hrefs = seen.page.locator("nav a[href^='/']").evaluate_all("(links) => links.map((a) => a.pathname)")
            assert hrefs
            assert {href for href in hrefs if href not in known} <= {"/"}
