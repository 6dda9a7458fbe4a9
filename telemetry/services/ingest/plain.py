"""Plain jobs of a block, written in columns: those that are history, new, and without any need to look closer.

Everything else of a block goes the way of single records (`chunks.py`), which knows updates, late reports, secrets,
news and what does not fit. Both ways write the same rows; tests hold them together.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from portal.core import clock
from principals.models import Cluster
from telemetry.engine.attribution import (
    CONFIDENCE,
    METHOD_LABELLED,
    METHOD_LABELLED_DOUBTED,
    UNKNOWN,
    Attribution,
)
from telemetry.engine.labels import labelled_harness
from telemetry.engine.receipts import receipts_of
from telemetry.engine.rollup_columns import JOB_SCHEMA
from telemetry.engine.slurm.bulk_columns import Columns
from telemetry.engine.slurm.records import EARLIEST_S, LARGEST_COUNT, LONGEST_S, JobRecord, Outcome
from telemetry.engine.suspects import find_suspects
from telemetry.engine.touched import as_date
from telemetry.engine.transitions import NEWS_AGE_S
from telemetry.engine.usage import DAY_S
from telemetry.services import rollups
from telemetry.services.attribution import Attributor
from telemetry.services.ingest import rows
from telemetry.services.ingest.feed import Counts, Feed

_NAMES: Final = ("user", "account", "group", "cluster")
_COUNTS: Final = ("nodes", "cpus", "gpus", "restarts", "exit_code", "exit_signal")
_KEY: Final = ("raw_job_id", "submit_s")
_SCHEMA: Final = {
    "actor": pl.String, "actor_method": pl.String, "actor_confidence": pl.Float64, "harness": pl.String,
    "session_id": pl.Int64, "agent_id": pl.Int64, "campaign": pl.String,
}  # fmt: skip
# As the columns of the table are named, where that differs from the record, and what they may hold.
_RENAMED: Final = {
    "raw_id": "raw_job_id", "submit": "submit_s", "eligible": "eligible_s", "start": "used_from", "end": "end_s",
    "usage_end": "end_s",
}  # fmt: skip
_LENGTHS: Final = {"job_id": 64, "partition": 64, "qos": 64, "reason": 100}


@dataclass(frozen=True, slots=True)
class Plain:
    """Jobs of one block that are written in columns (`jobs`, digested), before their transaction."""

    jobs: pl.DataFrame
    columns: Columns

    def write(self, feed: Feed, counts: Counts) -> list[tuple[int, JobRecord]]:
        """Insert what is new, count what is known as it is, and return what is known in another form with its lines.

        Call it with the cluster's row locked.
        """
        jobs = self.jobs
        known = rows.find_digests(feed.cluster.pk, jobs["raw_job_id"].to_list())
        changed: list[tuple[int, JobRecord]] = []
        if known:
            stored = [known.get(key) for key in jobs.select(_KEY).iter_rows()]
            jobs = jobs.with_columns(pl.Series("stored", stored, dtype=pl.Int64))
            counts.duplicate_rows += len(jobs.filter(pl.col("stored") == pl.col("digest")))
            others = jobs.filter(pl.col("stored") != pl.col("digest")).drop("stored", "digest")
            changed = self.columns.numbered(others)
            jobs = jobs.filter(pl.col("stored").is_null())
        if not jobs.is_empty():
            _insert(feed, jobs, self.columns)
            counts.created_rows += len(jobs)
        return changed


def part(
    cluster: Cluster, columns: Columns, odd: Sequence[tuple[int, Outcome]]
) -> tuple[Plain, list[tuple[int, Outcome]]]:
    """Part a block: jobs to be written in columns, and all other outcomes in the order of their lines.

    A key that comes twice, also among `odd`, is left to the other way, where the order of reports counts.
    """
    jobs = columns.jobs
    keys = [(each.raw_job_id, each.submit_s) for _, each in odd if isinstance(each, JobRecord)]
    twice = pl.DataFrame(keys, schema=dict.fromkeys(_KEY, pl.Int64), orient="row").unique()
    jobs = jobs.join(twice.with_columns(pl.lit(value=True).alias("odd")), on=_KEY, how="left", maintain_order="left")
    simple = (
        (pl.col("end_s") < clock.now_s() - NEWS_AGE_S).fill_null(value=False)
        & pl.col("odd").is_null()
        & ~pl.struct(_KEY).is_duplicated()
        & (pl.max_horizontal(_COUNTS) <= LARGEST_COUNT)
        & _fit_times()
    )
    jobs = jobs.with_columns(simple=simple & _fit_names(jobs, cluster) & ~find_suspects(jobs, columns))
    others = jobs.filter(~pl.col("simple")).drop("simple", "odd")
    rest = [*columns.numbered(others), *odd]
    kept = jobs.filter("simple").drop("simple", "odd")
    kept = kept.with_columns(columns.digests(kept))
    return Plain(kept, columns), sorted(rest, key=lambda each: each[0])


def _fit_times() -> pl.Expr:
    """Say of jobs that ended whether `rows.find_fault` lets their times pass."""
    start, end = pl.when("started").then("start_s"), pl.col("end_s")
    longest = pl.coalesce(end - start + DAY_S, LONGEST_S)
    return (pl.min_horizontal("submit_s", start, end) >= EARLIEST_S) & (pl.col("elapsed_s") <= longest)


def _fit_names(jobs: pl.DataFrame, cluster: Cluster) -> pl.Series:
    """Say of each job whether its cluster is ours and its names may be kept."""
    distinct = jobs.select(_NAMES).unique()
    fit = [
        rows.find_misnamed(*names, named=named, cluster=cluster.name) is None for *names, named in distinct.iter_rows()
    ]
    table = distinct.with_columns(pl.Series("fit", fit, dtype=pl.Boolean))
    return jobs.select(_NAMES).join(table, on=_NAMES, how="left", maintain_order="left")["fit"]


def _insert(feed: Feed, jobs: pl.DataFrame, columns: Columns) -> None:
    started = pl.when("started").then("start_s").alias("used_from")  # Slurm writes a start for those too that never ran
    jobs = _with_ids(feed, jobs).with_columns(started)
    jobs = _with_attribution(feed, jobs, columns)
    extra = [rows.extra_json(tuple(each.extra.items()), each.comment, each.gpu_types, each.campaign[:100])
             for each in columns.tails]  # fmt: skip
    same = {"cluster_id": feed.cluster.pk, "array_tasks": 1, "changed": clock.now_s(), "batch_id": feed.batch.pk}
    jobs = jobs.with_columns(
        *(pl.lit(value).alias(name) for name, value in same.items()),
        pl.Series("extra", extra, dtype=pl.String).gather(jobs["tail"]),
    )
    rows.insert_frame(jobs.select(_column(name) for name in (*rows.KEY, *rows.VALUES)))
    pairs = {(as_date(day), user) for day, user in _touched(jobs)}
    rollups.mark_dirty(feed.cluster, pairs)
    if feed.load is not None:
        feed.load.note(jobs.select(_column(name).cast(kind) for name, kind in JOB_SCHEMA.items()), pairs)
    feed.newest_s = max(feed.newest_s, _largest(jobs["submit_s"]), _largest(jobs["end_s"]))


def _column(name: str) -> pl.Expr:
    column = pl.col(_RENAMED.get(name, name))
    return (column.str.slice(0, _LENGTHS[name]) if name in _LENGTHS else column).alias(name)


def _with_ids(feed: Feed, jobs: pl.DataFrame) -> pl.DataFrame:
    distinct = jobs.select("user", "account", "group").unique(maintain_order=True)
    feed.directory.learn_logins(distinct["user"])
    ids = [feed.ids_of(*names)[1:] for names in distinct.iter_rows()]
    found = pl.DataFrame(ids, schema=dict.fromkeys(("cluster_user_id", "account_id", "lab_id"), pl.Int64), orient="row")
    table = distinct.hstack(found)
    return jobs.join(table, on=["user", "account", "group"], how="left", maintain_order="left")


def _with_attribution(feed: Feed, jobs: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Add who submitted each job and its campaign: its own label, else that of the session it came from."""
    submits, users = jobs["submit_s"], jobs["cluster_user_id"]
    named = _named_receipts(jobs, columns)
    receipts = frozenset[str]().union(*named.values())
    attributor = Attributor(feed.cluster, users.unique().to_list(), _smallest(submits), _largest(submits), receipts)
    spans = [(user, first_s, *_flat(found), campaign) for user, first_s, found, campaign in attributor.spans()]
    table = pl.DataFrame(spans, schema={"cluster_user_id": pl.Int64, "submit_s": pl.Int64, **_SCHEMA}, orient="row")
    asked = jobs.select("cluster_user_id", "submit_s").with_row_index("at").sort("submit_s")
    found = asked.join_asof(table.sort("submit_s"), on="submit_s", by="cluster_user_id", check_sortedness=False)
    found = found.sort("at").select(pl.coalesce(name, value) for name, value in _NOBODY.items())
    found = _with_labels(found, jobs, columns)
    if named:
        found = _with_receipts(found, jobs, columns, attributor, named)
    own = pl.Series("campaign", [tail.campaign[:100] for tail in columns.tails], dtype=pl.String).gather(jobs["tail"])
    return jobs.hstack(found.with_columns(pl.when(own != "").then(own).otherwise("campaign").alias("campaign")))


def _with_labels(found: pl.DataFrame, jobs: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Let the labels of the controller speak before the sessions (`attribution.labelled`), where there are any."""
    labels = pl.Series("label", [labelled_harness(tail.extra) for tail in columns.tails], dtype=pl.String)
    if not (labels != "").any():
        return found
    same = pl.col("harness") == pl.col("label")
    method = (
        pl.when(pl.col("actor") == "human").then(pl.lit(METHOD_LABELLED_DOUBTED)).otherwise(pl.lit(METHOD_LABELLED))
    )
    told = {
        "actor": pl.lit("agent"), "actor_method": method, "actor_confidence": method.replace_strict(CONFIDENCE),
        "harness": pl.col("label"), "session_id": pl.when(same).then("session_id"),
        "agent_id": pl.when(same).then("agent_id"),
        "campaign": pl.when(same).then("campaign").otherwise(pl.lit("")),
    }  # fmt: skip
    is_labelled = pl.col("label") != ""
    changed = (pl.when(is_labelled).then(each).otherwise(name).alias(name) for name, each in told.items())
    return found.with_columns(labels.gather(jobs["tail"])).with_columns(changed).drop("label")


def _named_receipts(jobs: pl.DataFrame, columns: Columns) -> dict[int, frozenset[str]]:
    """Return the receipts that jobs name, by the tails that name any."""
    tails = ((at, columns.tails[at]) for at in jobs["tail"].unique().to_list())
    return {at: names for at, tail in tails if (names := receipts_of(tail.comment, tail.extra))}


def _with_receipts(
    found: pl.DataFrame, jobs: pl.DataFrame, columns: Columns, attributor: Attributor, named: Collection[int]
) -> pl.DataFrame:
    """Attribute the jobs that name a receipt one by one: what it says depends on their login and submit."""
    names = jobs.select(pl.col("tail").is_in(list(named))).to_series()
    told = []
    for tail, user_id, submit_s in jobs.filter(names).select("tail", "cluster_user_id", "submit_s").iter_rows():
        comment, extra = columns.tails[tail].comment, columns.tails[tail].extra
        each, campaign = attributor.attribute(user_id, submit_s, campaign="", comment=comment, extra=extra)
        told.append((*_flat(each), campaign))
    numbered = found.with_row_index("at")
    answers = pl.DataFrame(told, schema=_SCHEMA, orient="row").insert_column(0, numbered.filter(names)["at"])
    return pl.concat([numbered.filter(~names), answers]).sort("at").drop("at")


def _flat(found: Attribution) -> tuple[Any, ...]:
    return found.actor, found.method, found.confidence, found.harness, found.session_id, found.agent_id


_NOBODY: Final = {
    name: pl.lit(value, dtype=kind)
    for (name, kind), value in zip(_SCHEMA.items(), (*_flat(UNKNOWN), ""), strict=True)
}  # fmt: skip


def _touched(jobs: pl.DataFrame) -> set[tuple[int, int]]:
    """Return the (day since 1970, user id) pairs on which the jobs count: of submit, of end, and those between."""
    submit, start, end = (pl.col(name) // DAY_S for name in ("submit_s", "used_from", "end_s"))
    ran = pl.int_ranges(pl.min_horizontal(start, end), end + 1)  # of a job that never ran: the day of its end
    days = jobs.select("cluster_user_id", submit.alias("submitted"), ran.alias("day"))
    pairs = set(days.select("submitted", "cluster_user_id").unique().iter_rows())
    return pairs | set(days.select("day", "cluster_user_id").unique().explode("day").iter_rows())


def _smallest(numbers: pl.Series) -> int:
    return int(numbers.min())  # type: ignore[arg-type]


def _largest(numbers: pl.Series) -> int:
    return int(numbers.max())  # type: ignore[arg-type]
