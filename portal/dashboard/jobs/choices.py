"""What the filters of the job pages offer."""

from collections.abc import Collection, Sequence

from django.db.models import QuerySet
from django.http import QueryDict

from principals.engine.harnesses import harness_name
from telemetry import selectors
from telemetry.models import Job, JobState
from telemetry.selectors import JobFilter

ACTORS = [
    ("", "Everyone"),
    ("agent", "Agents"),
    ("human", "People"),
    ("unknown", "Not attributed"),
    ("others", "All but agents"),
]
WAITS = [("", "any time"), ("600", "10 min"), ("3600", "1 h"), ("21600", "6 h"), ("86400", "24 h"), ("604800", "7 d")]
_TAGS = {
    "from": "From {}", "to": "Until {}", "user": "User {}", "agent": "Agent {}", "campaign": "Campaign {}",
    "place": "Agent’s place: {}", "qos": "QoS {}", "max_elapsed_s": "Ran at most {} s", "gpu_use": "GPU use: {}",
    "gpu_fit": "Would have done: {}",
}  # fmt: skip
Options = list[tuple[str, str]]


def live_choices(jobs: QuerySet[Job], asked: JobFilter) -> dict[str, Options]:
    """Return partitions, labs and harnesses among live jobs, and clusters: four queries."""
    partitions = [str(row[0]) for row in selectors.choices_in(jobs, "partition")]
    labs = [(str(name), str(title)) for title, name in selectors.choices_in(jobs, "lab__title", "lab__name")]
    harnesses = [str(row[0]) for row in selectors.choices_in(jobs, "harness")]
    clusters = [one.name for one in selectors.clusters()]
    choosable = len(clusters) > 1 or bool(asked.cluster)
    return {
        "partitions": _offer([(name, name) for name in partitions], asked.partition),
        "labs": _offer(labs, asked.lab),
        "harnesses": _offer([(slug, harness_name(slug)) for slug in harnesses], asked.harness),
        "clusters": _offer([(name, name) for name in clusters], asked.cluster) if choosable else [],
    }


def _offer(options: Options, chosen: str) -> Options:
    # What was asked for stays on offer, or the form would show another filter than the one in force.
    if chosen and chosen not in {value for value, _ in options}:
        options = [*options, (chosen, chosen)]
    return [("", f"All {len(options)}" if options else "All"), *options]


def tags_of(query: QueryDict, asked: JobFilter, *, shown: Collection[str] = ()) -> list[dict[str, str]]:
    """Return the filters in force as removable tags, but for those `shown` by controls of the page."""
    found = [
        {"param": param, "text": words.format(query[param][:60])}
        for param, words in _TAGS.items()
        if query.get(param) and param not in shown
    ]
    if asked.states and not ("state" in shown and len(asked.states) == 1):
        found.append({"param": "state", "text": _states_in_words(asked.states)})
    return found


def _states_in_words(states: Sequence[str]) -> str:
    labels = [str(JobState(state).label) for state in states]
    return " or ".join([", ".join(labels[:-1]), labels[-1].lower()] if len(labels) > 1 else labels)
