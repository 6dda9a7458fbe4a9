"""Invented rows for the page of all parts."""

from __future__ import annotations

import datetime as dt
from typing import Any


def samples(now: dt.datetime) -> dict[str, Any]:
    """Return sample data for the parts that take lists; times are set back from `now`."""
    ago = [now - dt.timedelta(seconds=s) for s in (4, 1260, 11_000, 90_000, 900_000)]
    return {
        "share_rows": [
            _share("People", "314", "1,611", 0.195),
            _share("Submissions", "3.96 M", "7.09 M", 0.558),
            _share("Core-hours", "10.4 M", "35.7 M", 0.291),
            _share("Rare measure", "4", "100", 0.04),
        ],
        "states": [
            {"state": state, "label": label, "count": number, "when": when, "share": share}
            for state, label, number, when, share in (
                ("PENDING", "Pending", 3412, "now", 0.61),
                ("RUNNING", "Running", 8907, "now", 0.54),
                ("COMPLETED", "Completed", 11_284, "last hour", 0.57),
                ("FAILED", "Failed", 612, "last hour", 0.63),
            )
        ],
        "actors": [("", "Everyone"), ("agent", "Agents", 9), ("human", "People", 3)],
        "partitions": [("", "All 14"), ("gpu", "gpu"), ("shared", "shared")],
        "path": [
            {"title": "New", "note": "10:04, collector", "at": "past"},
            {"title": "Triaged", "note": "10:21, u0015", "at": "current"},
            {"title": "Contained", "note": "due 14:04", "at": ""},
            {"title": "Resolved", "note": "due 10 Aug 10:04", "at": ""},
        ],
        "reasons": [
            {"weight": 2, "text": "Runs unattended outside working hours"},
            {"weight": 1, "text": "May submit to GPU partitions"},
            {"weight": -1, "text": "Sandboxed on login nodes since 19 Jul"},
        ],
        "entries": [
            {"at": ago[0], "by": "system", "what": "Seen again in process arguments", "note": "14th time, login03"},
            {"at": ago[1], "by": "human", "what": "u0015 took it and marked it triaged", "note": "scope confirmed"},
            {"at": ago[3], "by": "agent", "what": "quillon-dataset-builder ran curl", "note": "session ses_f40d"},
        ],
        "ticks": [
            {"at": ago[0], "name": "48213951", "url": "?job=48213951", "text": "started", "whose": "okafor-ci"},
            {"at": ago[1], "name": "48213860", "url": "?job=48213860", "text": "out of memory", "whose": "u0102"},
        ],
        "numbers": {
            "head": ["Share of submissions", "Agents", "People"],
            "rows": [["Weekdays, 08:00–18:00", "35.9 %", "75.0 %"], ["Saturday and Sunday", "23.7 %", None]],
        },
        "exports": [{"name": "CSV", "url": "?format=csv", "noun": "the numbers"}],
        "week": [
            {
                "src": "/dev/components/figure/week-agents/",
                "label": "Heatmap of agents’ submissions by weekday and hour: nearly even.",
                "legend": "agent",
            },
            {
                "src": "/dev/components/figure/week-people/",
                "label": "Heatmap of people’s submissions by weekday and hour: working hours on weekdays.",
                "legend": "human",
            },
        ],
        "jobs": [
            {"id": 48213951, "name": "tok_shard[88]", "state": "RUNNING", "who": "quillon-builder", "kind": "agent",
             "used": 3, "limit": 7200, "at": ago[0]},
            {"id": 48213938, "name": "dock_batch[3-90]", "state": "RUNNING", "who": "okafor-docking", "kind": "agent",
             "used": 3494, "limit": 3600, "at": ago[1]},
            {"id": 48213944, "name": "bash", "state": "PENDING", "who": "u0915", "kind": "human",
             "used": None, "limit": 7200, "at": ago[2]},
            {"id": 48213940, "name": "<b>wrf</b>", "state": "OUT_OF_MEMORY", "who": "not attributed", "kind": "unknown",
             "used": 51, "limit": 172_800, "at": ago[4]},
        ],
        "masked": 'curl -sS -H "Authorization: token ghp_••••••••3kQ9" \\\n  https://api.example.org/<repo>/dispatches',
        "masks": ["ghp_••••••••3kQ9", "<repo>"],
    }  # fmt: skip


def _share(label: str, part: str, whole: str, share: float) -> dict[str, Any]:
    return {
        "label": label, "part": part, "whole": whole, "share": share,
        "url": f"?measure={label}", "part_url": f"?measure={label}&actor=agent",
        "rest_url": f"?measure={label}&actor=human",
    }  # fmt: skip
