"""What tests of reports share."""

import pytest

from portal.reports import few, few_cells


@pytest.fixture
def few_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing of accounting empty: the small facility is of nine people, and its numbers are known."""
    monkeypatch.setattr(few, "withheld", lambda groups: set[str]())
    monkeypatch.setattr(few, "enough", lambda people: True)
    monkeypatch.setattr(few_cells, "left_empty", lambda table, lines: set[tuple[str, str]]())
