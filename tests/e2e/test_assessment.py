"""The report of `gatehouse assess`, opened as a file: it fetches nothing, fits, and axe finds nothing in it."""

import io
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from portal.reports import assessment
from tests.telemetry.engine.sacct_texts import NOW_S, many_rows

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
KNOWN = assessment.Known(frozenset({"u03", "u04"}))


@pytest.mark.parametrize("known", [KNOWN, assessment.Known()], ids=["known", "unknown"])
@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1440, "light")])
def test_the_report_stands_alone(
    browser: Browser, tmp_path: Path, width: int, theme: Any, known: assessment.Known
) -> None:
    dump = io.BytesIO(b"".join(many_rows(500)))
    content = assessment.assess(
        [("july", dump)], known=known, cluster="aster", now_s=NOW_S, note=lambda name, offset: None
    )
    report = tmp_path / "report.html"
    report.write_text(assessment.draw(content), encoding="utf-8")
    # The page's own policy lets no script in; the checker is one.
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, offline=True, bypass_csp=True
    )
    page = context.new_page()
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(message.text))
    page.goto(report.as_uri())
    assert seen == [report.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []
    context.close()
