"""The page of all parts: no violation, no sideways scroll, no message, in both themes, narrow and wide."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


@pytest.fixture
def address(live_server, settings):
    settings.DEBUG = True
    return f"{live_server.url}/dev/components/"


def opened(browser, address, width=1440, theme="light", **options):
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **options).new_page()
    messages = []
    page.set_default_timeout(20_000)
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address)
    expect(page.locator(".figure:not([data-drawn])")).to_have_count(0, timeout=20_000)
    return page, messages


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1920])
def test_it_is_quiet_and_fits(browser, address, width, theme):
    page, messages = opened(browser, address, width, theme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert messages == []
    page.context.close()


@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1440, "light")])
def test_axe_finds_nothing(browser, address, width, theme):
    # The page's own policy is tested above; here it would keep the checker out.
    page, _ = opened(browser, address, width, theme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((all) => all.violations)")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []
    page.context.close()


def test_a_choice_of_theme_repaints_charts_and_outlives_a_reload(browser, address):
    page, _ = opened(browser, address, bypass_csp=True)  # so that the test may wait for an expression
    stroke = "getComputedStyle(document.querySelector('.figure .scatterlayer path.js-line')).stroke"
    light = page.evaluate(stroke)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.wait_for_function(f"{stroke} !== '{light}'")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()


def test_keys_move_in_lists_and_never_fire_in_fields(browser, address):
    page, _ = opened(browser, address)
    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") != "" != first
    page.locator("#id_purpose").press_sequentially("jk?/")
    assert page.locator("#id_purpose").input_value() == "jk?/"
    page.locator("h1").click()
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Shift+?")
    assert page.locator("#keys").is_visible()
    page.context.close()


def test_a_click_on_a_point_opens_its_rows(browser, address):
    page, _ = opened(browser, address)
    box = page.locator('[data-src$="by-day/"]').bounding_box()
    page.locator('[data-src$="by-day/"]').scroll_into_view_if_needed()
    page.locator('[data-src$="by-day/"] .nsewdrag').first.click(position={"x": box["width"] / 3, "y": 60})
    page.wait_for_url("**/dev/components/?day=2026-*")
    page.context.close()


def test_it_works_without_script(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.get_by_role("button", name="Apply").first.is_visible()
    page.get_by_role("button", name="Dark").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    context.close()
