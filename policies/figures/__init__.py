"""Named figures of `policies`: those of its pages, and those of the report over a period."""

from policies.figures.pages import FIGURES, Figure
from policies.figures.report import REPORT

__all__ = ["FIGURES", "REPORT", "Figure"]
