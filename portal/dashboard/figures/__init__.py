"""Figures with axes: each builder returns a plain dict (`data`, `layout`) to be sent as JSON.

    from portal.dashboard import figures
    return JsonResponse(figures.lines_by_day(days, [...]))

Colours are `var(--token)` strings; `charts.js` paints them for the theme in force.
"""

from portal.dashboard.figures.build import (
    Series,
    as_json,
    cumulative,
    dot_pairs,
    hour_of_week,
    lines_by_day,
    stacked_columns,
)
from portal.dashboard.figures.style import GATEHOUSE

__all__ = [
    "GATEHOUSE",
    "Series",
    "as_json",
    "cumulative",
    "dot_pairs",
    "hour_of_week",
    "lines_by_day",
    "stacked_columns",
]
