"""A report in short: its headline figures, what changed since the period before, what somebody should look at."""

from typing import Any, Final

from portal.reports import changes
from portal.reports.curves import WRITTEN_WITH
from portal.reports.drawing import shown, verdict

Json = dict[str, Any]
HEADLINES: Final = (
    "total-submissions", "share-submissions-job", "share-core-hours-job", "share-GPU-hours-job", "share-people-job",
    "queries-per-job", "cancelled", "runtime-one-minute", "gpu-stranded", "trial-wait", "exposed-keys",
)  # fmt: skip
MUCH: Final = 0.25  # of what it was: a headline that moves by so much is worth a look
MOSTLY: Final = 0.5  # not attributed: then a figure says little of agents


def of(content: Json) -> Json:
    """Return the short form of a content: every number written, and the same as in the long one."""
    figures = {figure["key"]: figure for section in content["sections"] for figure in section["figures"]}
    measured = [figures[key] for key in HEADLINES if key in figures and not figures[key]["needs"]]
    criteria = [figure for figure in figures.values() if figure.get("criterion")]
    return {
        "title": content["title"], "cluster": content["cluster"], "facility": content["facility"],
        "first": content["first"], "last": content["last"], "is_demo": content["is_demo"],
        "against": against(content), "lines": [_line(figure) for figure in measured],
        "criteria": [_line(figure) | {"criterion": figure["criterion"], "verdict": verdict(figure)}
                     for figure in criteria],
        "attention": _attention(measured, criteria),
        "missing": sum(bool(figure["needs"]) for figure in figures.values()),
    }  # fmt: skip


def against(content: Json) -> str:
    """Say what a report's changes are counted from, or why there are none; "" where it knows of no changes."""
    before = content.get("before")
    if not before:
        return ""
    if "why" in before:
        return str(before["why"])
    said = f"Changes are against {before['title']}, version {before['version']} ({before['state']})."
    if before["state"] == "published":
        return said
    return f"{said} That one is not published: readers of this report, and its exports, are shown none of them."


def _line(figure: Json) -> Json:
    bare = figure["value"] is None or figure["unit"] in WRITTEN_WITH
    words = "" if bare else f" {figure['unit']}"
    return {
        "title": figure["title"],
        "value": "not measured yet" if figure["needs"] else f"{shown(figure['value'], figure['unit'])}{words}",
        "change": changes.written(figure["value"], figure.get("before"), figure["unit"]),
        "url": "" if figure["value"] is None else figure["url"],
    }  # fmt: skip


def _attention(measured: list[Json], criteria: list[Json]) -> list[str]:
    """Return a sentence for each thing to look at: criteria first, then what moved, then what is hardly known."""
    said = [f"{figure['title']}: {figure['criterion']} is not met." for figure in criteria
            if figure.get("is_met") is False]  # fmt: skip
    for figure in measured:
        part = changes.relative(figure["value"], figure.get("before"))
        if part is not None and abs(part) >= MUCH:
            change = changes.written(figure["value"], figure["before"], figure["unit"])
            said.append(f"{figure['title']} moved: {change}.")
    unknown = next((figure["unknown_share"] for figure in measured if figure["key"] == "share-submissions-job"), None)
    if unknown is not None and unknown > MOSTLY:
        said.append(f"{shown(unknown, 'share')} of submissions are not attributed: agents’ part is a lower bound.")
    return said
