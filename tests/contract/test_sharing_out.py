"""Tests that start something costly run in one worker; everything else runs wherever there is time, soaks if asked."""

import pytest

from tests.support.capabilities import ROOT, pytest_collection_modifyitems
from tests.support.sharing_out import ALONE, APART, TOGETHER, unit_of


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/e2e/test_live_jobs.py::test_a[x]", "tests/e2e/test_live_jobs.py"),
        ("tests/run/test_run.py::Case::test_b", "tests/run/test_run.py"),
        ("tests/collector/test_capture.py::test_d", ALONE),
        ("tests/collector/test_run.py::test_e", ALONE),
        (f"{APART}::test_a_page[staff-/jobs/]", f"{APART} as staff"),
        (f"{APART}::test_a_page[pi-/lab/]", f"{APART} as others"),
        ("tests/core/test_clock.py::test_c", "tests/core/test_clock.py::test_c"),
    ],
)
def test_a_unit_stays_together(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


@pytest.mark.parametrize("path", [*TOGETHER, APART, ALONE])
def test_what_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("expression", "is_skipped"), [("", True), ("sql", True), ("soak", False)])
def test_a_soak_runs_only_where_it_is_asked_for(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, expression: str, is_skipped: bool
) -> None:
    """`pytest tests/reports` is no hour's work."""
    soak = pytest.Function.from_parent(request.node.parent, name="soak", callobj=lambda: None)
    soak.add_marker("soak")
    monkeypatch.setattr(request.config.option, "markexpr", expression)
    pytest_collection_modifyitems(request.config, [soak])
    assert (soak.get_closest_marker("skip") is not None) == is_skipped
