"""The report of `gatehouse assess`, opened as a file: it fetches nothing, fits, and axe finds nothing in it."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from portal.reports import assessment
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.slurm.sacct_text import SacctReader
from tests.telemetry.engine.gpu_texts import export, sample
from tests.telemetry.engine.sacct_texts import NOW_S, many_rows

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
KNOWN = assessment.Known(frozenset({"u03", "u04"}))


def uses(dump: bytes) -> Iterator[tuple[JobRecord, tuple[float, float], str]]:
    """Jobs with GPUs, each with a use of them at its end."""
    for one in SacctReader(io.BytesIO(dump), now_s=NOW_S):
        if isinstance(one, JobRecord) and one.gpus and one.started and one.end_s:
            at = datetime.fromtimestamp(one.end_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            yield one, (one.raw_job_id * 7 % 101, one.raw_job_id * 31 % 101), at


@pytest.mark.parametrize("known", [KNOWN, assessment.Known()], ids=["known", "unknown"])
@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1440, "light")])
def test_the_report_stands_alone(
    browser: Browser, tmp_path: Path, width: int, theme: Any, known: assessment.Known
) -> None:
    dump = b"".join(many_rows(500))
    gpus = io.BytesIO(
        export(*(sample(one.raw_job_id, f"{one.raw_job_id}", *use, at=at) for one, use, at in uses(dump)))
    )
    content = assessment.assess(
        [("july", io.BytesIO(dump))], known=known, cluster="aster", now_s=NOW_S, note=lambda name, offset: None,
        zone="Europe/Berlin", gpus=[("gpus", gpus)],
    )  # fmt: skip
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
    assert page.locator("#gpu-use .parts").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((all) => all.violations)")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []
    context.close()
