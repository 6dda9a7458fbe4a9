"""Every page that staff or a PI can reach: accessible in both themes and widths, quiet, and at home on this host.

The list of pages is the permission table's: a page that is new there is visited here.
"""

import sqlite3
from contextlib import closing

import pytest

from portal.demo.cast import CLUSTER
from tests.e2e.visits import visit
from tests.portal.permission_table import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.outside]
LOGINS = {"nobody": "", "staff": "u0007", "pi": "u0398"}
# What the objects that paths name are called in the demo; numbers are looked up.
NAMES = {"agent": "okafor-docking", "lab": "okafor", "cluster": CLUSTER}
NUMBERS = {
    "incident": "SELECT id FROM security_incident ORDER BY id LIMIT 1",
    "published_month": "SELECT strftime('%Y-%m', month) FROM reports_report ORDER BY id LIMIT 1",
}


def _visits() -> list[tuple[str, str]]:
    """Role and path of every page: what a GET answers with 200 and whose address ends as a page's does."""
    pages = [row for row in PAGES if row.method == "GET" and row.path.split("?")[0].endswith("/")]
    found = [(role, row.path) for role in ("staff", "pi") for row in pages if row.expect(role) == 200]
    return found + [("nobody", row.path) for row in pages if row.expect("nobody") == 200 and row.expect("pi") != 200]


def _address(facility, path: str) -> str:
    names = dict(NAMES)
    with closing(sqlite3.connect(facility.data / "gatehouse.sqlite3", timeout=30)) as database:
        for name, query in NUMBERS.items():
            if "{" + name + "}" in path:
                row = database.execute(query).fetchone()
                if row is None:
                    pytest.skip(f"the demo has no {name}")
                names[name] = row[0]
    return path.format(**names)


@pytest.mark.parametrize(("role", "path"), _visits(), ids=lambda value: value)
def test_a_page_is_accessible_quiet_and_at_home(browser, facility, role, path):
    with visit(browser, facility, LOGINS[role], viewport={"width": 1440, "height": 900}) as seen:
        assert seen.open(_address(facility, path)) == 200
        found = {}
        for width, theme in ((1440, "light"), (1440, "dark"), (390, "dark"), (390, "light")):
            seen.page.set_viewport_size({"width": width, "height": 900})
            seen.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
            if violations := seen.axe():
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
