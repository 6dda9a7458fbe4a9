"""Rows that do not stand on one line each: which lines together are a record?

A group is a line that stands for itself or looks like a record, and the lines behind it that do neither. Its
reading is the one that leaves the fewest lines over and, among those, finds the most records. When two
readings are equally good, or a line that looks like a record of its own would have to be taken as the tail of
another, the lines are set aside together: never a guess.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from telemetry.engine.slurm.columns import Plan, first_fault, resembles_record, split_ways
from telemetry.engine.slurm.errors import FieldError, RowError
from telemetry.engine.slurm.lines import Line
from telemetry.engine.slurm.records import Outcome, Rejected
from telemetry.engine.slurm.rows import RowBuilder

AMBIGUOUS_SPLIT = "Several ways to cut the row at its separators make every typed column valid"
AMBIGUOUS_RECORD = "These lines can be read as one record or as several"


class Row(NamedTuple):
    """A physical line, cut at every separator; `outcome` where it stands for itself."""

    line: Line
    fields: Sequence[str]
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class _Reading:
    leftovers: int
    records: int
    ways: int
    behind: int  # where the first segment ends; its own start + 1 also for a line left over
    outcome: Outcome | None

    @property
    def rank(self) -> tuple[int, int]:
        return (self.leftovers, -self.records)


def judge(
    plan: Plan, builder: RowBuilder, fields: Sequence[str], number: int, raw: str, lines: int = 1
) -> Outcome | None:
    """Read one row whose text may hold separators; None when no split makes it a record."""
    count, values = split_ways(plan, fields)
    if count == 0:
        return None
    if count > 1:
        return Rejected(number, "ambiguous_split", AMBIGUOUS_SPLIT, raw, lines)
    try:
        return builder.build(values)
    except (FieldError, RowError) as error:
        return Rejected(number, error.code, error.detail, raw, lines)


def explain(plan: Plan, rows: Sequence[Row]) -> Rejected:
    """Say why lines that are part of no record were set aside."""
    raw, number = "\n".join(row.line.text for row in rows), rows[0].line.number
    found, width = sum(len(row.fields) for row in rows) - len(rows) + 1, plan.width
    fault = first_fault(plan, rows[0].fields) if len(rows) == 1 else None
    if any(row.line.damaged for row in rows):
        return Rejected(number, "invalid_utf8", "Bytes that are not UTF-8 in a typed column", raw, len(rows))
    if found < width:
        return Rejected(number, "too_few_columns", f"{found} values for {width} columns", raw, len(rows))
    if found == width and fault is not None:
        return Rejected(number, fault.code, fault.detail, raw, len(rows))
    return Rejected(number, "no_valid_split", "No way to cut the row makes every column valid", raw, len(rows))


def resolve(plan: Plan, builder: RowBuilder, rows: Sequence[Row]) -> Iterator[Outcome]:
    """Yield the outcomes of a group, in order; every line but a blank one is part of exactly one."""
    size = len(rows)
    best = [_Reading(0, 0, 1, size, None)] * (size + 1)
    opens = [_opens(plan, row) for row in rows]
    for i in range(size - 1, -1, -1):
        best[i] = _best_from(plan, builder, rows, best, i, opens[i])
    if best[0].ways > 1:
        raw = "\n".join(row.line.text for row in rows)
        yield Rejected(rows[0].line.number, "ambiguous_record", AMBIGUOUS_RECORD, raw, size)
        return
    i, left = 0, list[Row]()
    while i < size:
        reading = best[i]
        if reading.outcome is None:
            left.append(rows[i])
        else:
            yield from _left_over(plan, left)
            left = []
            yield reading.outcome
        i = reading.behind
    yield from _left_over(plan, left)


def _left_over(plan: Plan, rows: Sequence[Row]) -> Iterator[Outcome]:
    told = [row for row in rows if row.line.text]
    if not told:
        return
    head = told[0].outcome
    if isinstance(head, Rejected):
        raw = "\n".join(row.line.text for row in rows)
        yield Rejected(head.line_no, head.reason_code, head.detail, raw, len(rows))
    else:
        yield explain(plan, rows)


def _best_from(
    plan: Plan, builder: RowBuilder, rows: Sequence[Row], best: Sequence[_Reading], i: int, opens: bool
) -> _Reading:
    after = best[i + 1]
    found = _Reading(after.leftovers + 1, after.records, after.ways, i + 1, None)
    for j in range(i, len(rows)):
        outcome = _segment(plan, builder, rows[i : j + 1]) if j == i or opens else None
        if outcome is None:
            continue
        after = best[j + 1]
        reading = _Reading(after.leftovers, after.records + 1, after.ways, j + 1, outcome)
        if reading.rank == found.rank:
            found = _Reading(found.leftovers, found.records, 2, found.behind, found.outcome)
        elif reading.rank < found.rank:
            found = reading
    return found


def _opens(plan: Plan, row: Row) -> bool:
    """Say whether a record that goes on on the next line may begin with this one."""
    lead = plan.blocks[0][1]
    return (
        not row.line.fault
        and len(plan.blocks) > 1
        and len(row.fields) > lead
        and not first_fault(plan, row.fields[:lead])
    )


def _segment(plan: Plan, builder: RowBuilder, rows: Sequence[Row]) -> Outcome | None:
    if len(rows) == 1:
        return None if rows[0].outcome is None or _bad_row(rows[0]) else rows[0].outcome
    tail = plan.blocks[-1][1] - plan.blocks[-1][0]
    if len(rows[-1].fields) <= tail or sum(len(row.fields) - 1 for row in rows) < plan.width - 1:
        return None
    raw = "\n".join(row.line.text for row in rows)
    outcome = judge(plan, builder, raw.split("|"), rows[0].line.number, raw, len(rows))
    if outcome is not None and any(resembles_record(plan, row.fields) for row in rows[1:]):
        return Rejected(rows[0].line.number, "ambiguous_record", AMBIGUOUS_RECORD, raw, len(rows))
    return outcome


def _bad_row(row: Row) -> bool:
    """Say whether a line only looks like a record: set aside by itself, it may still begin a longer one."""
    return isinstance(row.outcome, Rejected) and row.outcome.reason_code in ROW_FAULTS


ROW_FAULTS = frozenset(
    str.split(
        "bad_job_id bad_time bad_duration bad_memory bad_count bad_tres unknown_state bad_exit_code bad_word "
        "invalid_utf8 no_valid_split"
    )
)
