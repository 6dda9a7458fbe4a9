"""Job changes as live events: only what is recent when it arrives."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from portal.core import clock
from portal.core.live import News
from principals.models import Cluster, Lab
from telemetry.engine.job_hints import Outputs, find_outputs, hint_for, waits_for
from telemetry.engine.slurm.records import JobRecord
from telemetry.engine.transitions import (
    NEWS_AGE_S,
    Transition,
    describe_change,
    describe_outcome,
    find_news,
    moment_of,
    name_transition,
)
from telemetry.events import JobNews
from telemetry.models import JobOutput
from telemetry.services.ingest.arrays import Arrays, Whose
from telemetry.services.ingest.rows import start_of

MOST_NODES = 500  # letters of a list of nodes


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job's change that is to be told, with what the record itself does not say."""

    record: JobRecord
    transition: Transition
    old_state: str | None
    user_id: int
    lab_id: int
    actor: str
    harness: str
    campaign: str
    source: str

    @property
    def whose(self) -> Whose:
        """Whose job it is."""
        submit = datetime.fromtimestamp(self.record.submit_s, UTC)
        return Whose(self.user_id, self.record.user, self.lab_id, self.campaign, submit)


def find_transition(record: JobRecord, old_state: str | None, *, now_s: int) -> Transition | None:
    """Return the named change of a record if it is news; most records of a file of history are none."""
    if record.end_s is not None and now_s - record.end_s > NEWS_AGE_S:
        return None  # whatever it was, nothing of it happened after its end
    event = name_transition(old_state, record.state)
    if event is None:
        return None
    # A state without a time of its own (suspended) happened when we see it change; at first sight, at its start.
    seen_s = now_s if old_state is not None else record.start_s or record.submit_s
    happened_s = moment_of(event, submit_s=record.submit_s, start_s=start_of(record), end_s=record.end_s, seen_s=seen_s)
    return find_news(old_state, record.state, happened_s=happened_s, now_s=now_s)


def tell(cluster: Cluster, changes: Iterable[JobChange]) -> list[News]:
    """Return the live events of some changes that were written: a query for their labs' names, one for what
    the queue said of their output, four for arrays. In the transaction that wrote them."""
    changes = list(changes)
    labs = dict(Lab.objects.filter(pk__in={change.lab_id for change in changes}).values_list("pk", "name"))
    arrays, outputs = (
        Arrays(cluster, changes),
        JobOutput.objects.of(cluster, [change.record.raw_job_id for change in changes]),
    )
    told = [
        _news(
            cluster,
            change,
            labs[change.lab_id],
            _outputs_of(change.record, outputs),
            alone=arrays.is_summarised(change),
        )
        for change in changes
    ]
    return told + arrays.tell(labs)


def _outputs_of(record: JobRecord, seen: Mapping[int, tuple[str, str]]) -> Outputs:
    return find_outputs(record, Outputs(*seen.get(record.raw_job_id, ("", ""))))


def _news(cluster: Cluster, change: JobChange, lab: str, outputs: Outputs, *, alone: bool) -> News:
    own = f"job:{cluster.name}:{change.record.raw_job_id}"
    topics = (own,) if alone else (own, *change.whose.wide_topics(cluster))
    at = datetime.fromtimestamp(change.transition.at_s, UTC)
    return News(name=change.transition.event, topics=topics, payload={**_payload(cluster, change, lab, outputs)}, at=at)


def _payload(cluster: Cluster, change: JobChange, lab: str, outputs: Outputs) -> JobNews:
    record = change.record
    ended = record.end_s is not None
    place, base = f"{cluster.name}/{record.raw_job_id}", settings.BASE_URL
    outcome = describe_outcome(record.state, record.exit_code, record.exit_signal)
    return JobNews(
        job_id=record.job_id[:64],
        raw_id=record.raw_job_id,
        cluster=cluster.name,
        submit=clock.written(datetime.fromtimestamp(record.submit_s, UTC)),
        state=record.state,
        old_state=change.old_state,
        reason=record.reason[:100],
        outcome=outcome,
        text=describe_change(
            change.transition.event,
            outcome=outcome,
            elapsed_s=record.elapsed_s,
            nodes=record.nodes,
            cpus=record.cpus,
            gpus=record.gpus,
        ),
        exit_code=record.exit_code if ended else None,
        exit_signal=record.exit_signal if ended else None,
        elapsed_s=record.elapsed_s,
        nodes=record.nodes,
        cpus=record.cpus,
        gpus=record.gpus,
        partition=record.partition[:64],
        actor=change.actor,
        harness=change.harness,
        user=record.user,
        lab=lab,
        campaign=change.campaign,
        source=change.source,
        lag_s=round(max(0.0, clock.now().timestamp() - change.transition.at_s), 1),
        waits_for=waits_for(record),
        hint=hint_for(record),
        node_list=record.node_list[:MOST_NODES],
        stdout=outputs.stdout,
        stderr=outputs.stderr,
        page=f"{base}/jobs/{place}/",
        api=f"{base}/api/v1/jobs/{place}",
    )
