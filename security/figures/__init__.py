"""Named figures of `security`: those of its pages, and those of the report over a period."""

from security.figures.pages import (
    FIGURES,
    Figure,
    by_kind,
    keys_resolved_this_month,
    keys_this_month,
    late_incidents,
    open_incidents,
    waiting,
)
from security.figures.report import REPORT

__all__ = [
    "FIGURES", "REPORT", "Figure", "by_kind", "keys_resolved_this_month", "keys_this_month", "late_incidents",
    "open_incidents", "waiting",
]  # fmt: skip
