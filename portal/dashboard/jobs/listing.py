"""The list of jobs, past ones too: what every figure drills down to."""

from typing import Any

from django.db.models import BigIntegerField, ExpressionWrapper, F, QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import render

from portal.dashboard import formats
from portal.dashboard.jobs import cells, choices
from portal.dashboard.jobs.exporting import export_jobs
from portal.dashboard.jobs.live import CountedPaginator
from principals.engine.harnesses import known_harnesses
from principals.models import Lab
from principals.web import PageRequest, page
from telemetry import selectors
from telemetry.models import Job, JobState
from telemetry.selectors import MOST_COUNTED, JobFilter, JobTotals, OrderedJobs, ranges_of

PAGE_SIZE = 50
_CORE_S, _GPU_S = F("cpus") * F("elapsed_s"), F("gpus") * F("elapsed_s")
# Orders with an index of their own; the others sort what was found, so only where that is not too much.
INDEXED: dict[str, Any] = {"submit": F("submit"), "end": F("usage_end")}
SORTED: dict[str, Any] = {"elapsed": F("elapsed_s"), "core": _CORE_S, "gpu": _GPU_S, "wait": F("start") - F("submit")}
COLUMNS = "Job; State; Submitted by; Asked for; Submitted|submit; Ran|n|elapsed; Core-hours|n|core; GPU-hours|n|gpu"
DAYS = [("submit", "Submission"), ("end", "End")]
STATES = [("", "Any"), *((value, label) for value, label in JobState.choices if value not in ("RESIZING", "REVOKED"))]


@page
def jobs(request: PageRequest) -> HttpResponseBase:
    """List jobs by the filters of the address, with what they add up to; `?format=csv|json` exports all pages."""
    asked = JobFilter.read(request.GET)
    found = asked.apply(Job.objects.visible_to(request.actor), request.actor)
    totals = selectors.total(request.actor, asked, found)
    found, sort = _sorted(found, request.GET.get("sort", "-end" if asked.by == "end" else "-submit"), totals)
    by_time = _by_time(request, asked, found.select_related(*cells.RELATED), sort)
    if wanted := request.GET.get("format"):
        return export_jobs(request, wanted, by_time.whole if by_time and by_time.whole is not None else found)
    rows = by_time or found.select_related(*cells.RELATED)
    listed = CountedPaginator(rows, PAGE_SIZE, count=totals.records)
    shown = listed.get_page(request.GET.get("page"))
    context = {
        "page": shown, "rows": cells.rows_of(shown.object_list, request.actor), "sort": sort, "asked": asked,
        "title": _title(totals), "foot": _foot(totals), "most": MOST_COUNTED, "columns": COLUMNS, "days": DAYS,
        "totals": totals, "states": STATES, "actors": choices.ACTORS, **_choices(request, asked),
        "tags": choices.tags_of(request.GET, asked, shown=("from", "to", "state", "user", "by")),
        "state": asked.states[0] if len(asked.states) == 1 else "",
        "sort_refused": sort != request.GET.get("sort", sort),
    }  # fmt: skip
    return render(request, "jobs/jobs.html", context)


def _choices(request: PageRequest, asked: JobFilter) -> dict[str, Any]:
    labs = [(lab.name, lab.title) for lab in Lab.objects.visible_to(request.actor).order_by("title")[:500]]
    clusters = [("", "All"), *((one.name, one.name) for one in selectors.clusters())]
    known = known_harnesses()
    harnesses = [*known.items(), *([(asked.harness, asked.harness)] if asked.harness not in ("", *known) else [])]
    return {"labs": [("", "All"), *labs], "clusters": clusters, "harnesses": [("", "All"), *harnesses]}


def _by_time(request: PageRequest, asked: JobFilter, jobs: QuerySet[Job], sort: str) -> OrderedJobs | None:
    """Return the list as ranges of an index, where it is in the order of one; what never ended has no place by end."""
    columns = {"submit": "submit"} | ({"end": "usage_end"} if asked.by == "end" else {})
    column = columns.get(sort.removeprefix("-"))
    ranges = ranges_of(request.actor, asked) if column else None
    if column is None or ranges is None:
        return None
    return OrderedJobs(jobs, ranges, column=column, falling=sort.startswith("-"))


def _sorted(jobs: QuerySet[Job], wanted: str, totals: JobTotals) -> tuple[QuerySet[Job], str]:
    key = wanted.removeprefix("-")
    known = INDEXED | SORTED if totals.exact else INDEXED
    if key not in known:
        wanted, key = "-submit", "submit"
    by = ExpressionWrapper(known[key], output_field=BigIntegerField())
    order = by.desc(nulls_last=True) if wanted.startswith("-") else by.asc(nulls_last=True)
    return jobs.order_by(order, "-pk" if wanted.startswith("-") else "pk"), wanted


def _title(totals: JobTotals) -> str:
    words = formats.counted(totals.records, "job")
    return words if totals.exact else f"More than {words}"


def _foot(totals: JobTotals) -> str:
    return "" if totals.exact else f"the first of more than {totals.records:,}"
