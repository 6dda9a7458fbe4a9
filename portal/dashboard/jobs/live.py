"""Live jobs: what Slurm holds now and what ended in the last hour, renewed as events arrive."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import F, QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import render

from portal.core import live, topics
from portal.core.models import LiveEvent, LiveEventTopic
from portal.dashboard.jobs import cells, choices
from portal.dashboard.jobs.exporting import export_jobs
from principals.actors import Actor
from principals.web import PageRequest, page
from telemetry import selectors
from telemetry.models import Job, JobState
from telemetry.selectors import JobFilter, StateCount

PAGE_SIZE = 25
TICKER_ROWS = 12
ORDERS: dict[str, tuple[Any, ...]] = {
    "changed": ("changed", "pk"),
    "submit": ("submit", "pk"),
    "ran": ("elapsed_s", "pk"),
    "user": ("cluster_user__login", "pk"),
}
ORDER_WORDS = {
    "changed": "sorted by latest change", "submit": "sorted by submission", "ran": "sorted by run time",
    "user": "sorted by user",
}  # fmt: skip
_NOW, _LAST_HOUR = "now", "last hour"
TILES = {
    "PENDING": _NOW, "RUNNING": _NOW, "COMPLETING": _NOW,
    "COMPLETED": _LAST_HOUR, "FAILED": _LAST_HOUR, "CANCELLED": _LAST_HOUR, "TIMEOUT": _LAST_HOUR,
}  # fmt: skip
_JOB_TOPICS = ("all-jobs:", "lab-jobs:", "user-jobs:")


class CountedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable when it runs
    """A paginator that is told how many there are, where a query has counted them already."""

    def __init__(self, rows: Any, per_page: int, *, count: int) -> None:
        super().__init__(rows, per_page)
        self._count = count

    @property
    def count(self) -> int:
        return self._count


@page
def live_jobs(request: PageRequest) -> HttpResponseBase:
    """Show live jobs by the filters of the address; a partial request gets the table and the counts by state."""
    asked = JobFilter.read(request.GET)
    everything = selectors.live_jobs(request.actor, asked.without("states"))
    found, sort = _sorted(selectors.live_jobs(request.actor, asked), request.GET.get("sort", "-changed"))
    if wanted := request.GET.get("format"):
        return export_jobs(request, wanted, found, name="live-jobs")
    # The cursor is read before the rows are: what changes meanwhile is told again, never missed.
    cursor, known = live.newest_seq(), live.committed_seq()
    counts = selectors.count_states(everything)
    context = _table(request, found, asked, counts) | {
        "sort": sort, "asked": asked, "order": ORDER_WORDS[sort.removeprefix("-")]
    }  # fmt: skip
    if getattr(request, "htmx", False) and request.htmx.target == "live-results":  # type: ignore[attr-defined]
        return render(request, "jobs/live_results.html", context | {"partial": True})
    heard = topics_of(request.actor, asked.cluster)
    context |= choices.live_choices(selectors.live_jobs(request.actor, JobFilter(cluster=asked.cluster)), asked) | {
        "topics": ",".join(heard), "cursor": cursor, "known": known, "entries": ticker_entries(heard),
        "actors": choices.ACTORS, "waits": choices.WAITS, "deck": _deck(asked),
        "tags": choices.tags_of(request.GET, asked), "known_states": JobState.values,
    }  # fmt: skip
    return render(request, "jobs/live.html", context)


def _deck(asked: JobFilter) -> str:
    where = f" on {asked.cluster}" if asked.cluster else ""
    return f"What Slurm holds{where} now and what ended in the last hour. One reader asks it, however many watch."


def _table(
    request: PageRequest, found: QuerySet[Job], asked: JobFilter, counts: dict[str, StateCount]
) -> dict[str, Any]:
    total = _total(asked, counts)
    listed = CountedPaginator(found.select_related(*cells.RELATED), PAGE_SIZE, count=total)
    shown = listed.get_page(request.GET.get("page"))
    return {
        "page": shown, "rows": cells.rows_of(shown.object_list, request.actor), "states": _tiles(counts),
        "all_live": sum(count.jobs for count in counts.values()),
    }  # fmt: skip


def _total(asked: JobFilter, counts: dict[str, StateCount]) -> int:
    """Return how many match, from the counts by state: no second count."""
    wanted = asked.wanted_states if asked.states else counts
    return sum(counts[state].jobs for state in wanted if state in counts)


def _tiles(counts: dict[str, StateCount]) -> list[dict[str, Any]]:
    tiles = []
    for state, when in TILES.items():
        group = (counts.get(one, StateCount()) for one in JobFilter(states=(state,)).wanted_states)
        found = sum(group, StateCount())
        tiles.append(
            {"state": state, "label": JobState(state).label, "when": when, "count": found.jobs, "share": found.share}
        )
    return tiles


def _sorted(jobs: QuerySet[Job], wanted: str) -> tuple[QuerySet[Job], str]:
    key = wanted.removeprefix("-")
    if key not in ORDERS:
        wanted, key = "-changed", "changed"
    falling = wanted.startswith("-")
    return jobs.order_by(*(F(name).desc() if falling else F(name).asc() for name in ORDERS[key])), wanted


def topics_of(actor: Actor, cluster: str) -> list[str]:
    """Return the topics of jobs that this person hears; who looks everywhere hears the cluster that is asked for."""
    heard = [topic for topic in topics.default_topics(actor) if topic.startswith(_JOB_TOPICS)]
    return [topic for topic in heard if topic == f"all-jobs:{cluster}"] if cluster and actor.sees_facility else heard


def ticker_entries(heard: list[str]) -> list[dict[str, Any]]:
    """Return the newest job events of some topics as entries of the ticker: one query."""
    told = LiveEventTopic.objects.filter(topic__in=heard).values("event_id")
    events = LiveEvent.objects.filter(pk__in=told, name__startswith="job.", seq__isnull=False).order_by("-seq")
    return [_entry(event) for event in events[:TICKER_ROWS]]


def _entry(event: LiveEvent) -> dict[str, Any]:
    facts = event.payload
    return {
        "at": event.at, "name": facts.get("job_id") or str(event.seq), "text": facts.get("text") or event.name,
        "whose": facts.get("user", ""), "url": cells.job_url(facts["cluster"], facts["raw_id"]),
    }  # fmt: skip
