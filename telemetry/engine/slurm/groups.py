"""Rows that do not stand on one line each: which lines together are a record?

A group is a line that stands for itself or looks like a record, and the lines behind it that do neither. Its
reading is the one that leaves the fewest lines over and, among those, finds the most records. When two
readings are equally good, or a line that looks like a record of its own would have to be taken as the tail of
another, the lines are set aside together: never a guess.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from telemetry.engine.slurm.columns import Plan, block_fits, first_fault, resembles_record, split_ways
from telemetry.engine.slurm.errors import FieldError, RowError
from telemetry.engine.slurm.lines import Line
from telemetry.engine.slurm.records import Outcome, Rejected
from telemetry.engine.slurm.rows import RowBuilder

MAX_TRIED_SEPARATORS = 20_000
AMBIGUOUS_SPLIT = "Several ways to cut the row at its separators make every typed column valid"
RECORD_TOO_LONG = "A record of more lines or bytes than are read as one"
AMBIGUOUS_RECORD = "These lines can be read as one record or as several"


class Row(NamedTuple):
    """A physical line, cut at every separator; `outcome` where it stands for itself."""

    line: Line
    fields: Sequence[str]
    outcome: Outcome | None


class Resolved(NamedTuple):
    """What a group came to, each outcome with the number of its first line, and the lines of the next group."""

    outcomes: list[tuple[int, Outcome]]
    rest: list[Row]


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


def resolve(plan: Plan, builder: RowBuilder, rows: Sequence[Row], *, full: bool = False) -> Resolved:
    """Give the outcomes of a group, in order; every line but a blank one is part of exactly one.

    A `full` group was ended by its size, not by the record behind it. The lines at its end that are
    part of no record yet are given back as the beginning of the next group; a record whose free last column
    reaches its end may go on and is set aside as `record_too_long`.
    """
    search, size = _Search(plan, builder, rows), len(rows)
    best = [_Reading(0, 0, 1, size, None)] * (size + 1)
    for i in range(size - 1, -1, -1):
        best[i] = search.best_from(best, i)
    if best[0].ways > 1 or search.budget < 0:
        raw = "\n".join(row.line.text for row in rows)
        number = rows[0].line.number
        return Resolved([(number, Rejected(number, "ambiguous_record", AMBIGUOUS_RECORD, raw, size))], [])
    outcomes: list[tuple[int, Outcome]] = []
    i, start, left = 0, 0, list[Row]()
    while i < size:
        reading = best[i]
        if reading.outcome is None:
            left.append(rows[i])
        else:
            outcomes += [*_left_over(plan, left), (rows[i].line.number, reading.outcome)]
            start, left = i, []
        i = reading.behind
    if full and left and len(left) < size:
        return Resolved(outcomes, left)
    if full and outcomes and not left and plan.checks[-1] is None:
        raw, number = "\n".join(row.line.text for row in rows[start:]), rows[start].line.number
        outcomes[-1] = number, Rejected(number, "record_too_long", RECORD_TOO_LONG, raw, size - start)
    return Resolved([*outcomes, *_left_over(plan, left)], [])


def _left_over(plan: Plan, rows: Sequence[Row]) -> Iterator[tuple[int, Outcome]]:
    told = [row for row in rows if row.line.text]
    if not told:
        return
    head = told[0].outcome
    if isinstance(head, Rejected):
        raw = "\n".join(row.line.text for row in rows)
        left = Rejected(head.line_no, head.reason_code, head.detail, raw, len(rows))
    else:
        left = explain(plan, rows)
    yield left.line_no, left


class _Search:
    """The readings of one group. `budget` bounds the work: the separators that all tried segments may hold.

    Text made to be tangled runs out of it; its group is then set aside as a whole.
    """

    def __init__(self, plan: Plan, builder: RowBuilder, rows: Sequence[Row]) -> None:
        self.budget = MAX_TRIED_SEPARATORS
        self._plan, self._builder, self._rows = plan, builder, rows
        self._opens = [_opens(plan, row) for row in rows]
        self._closes = [_closes(plan, row) for row in rows]
        self._resembles = [resembles_record(plan, row.fields) for row in rows]

    def best_from(self, best: Sequence[_Reading], i: int) -> _Reading:
        """Find the best reading of the lines from `i` on, given those of all later lines."""
        after = best[i + 1]
        found = _Reading(after.leftovers + 1, after.records, after.ways, i + 1, None)
        for j in range(i, len(self._rows) if self._opens[i] else i + 1):
            if j > i and self._resembles[j] and found.outcome is not None and not found.leftovers:
                break  # all is explained by a record that ends before the next one begins
            outcome = self._segment(i, j)
            if outcome is None:
                continue
            after = best[j + 1]
            reading = _Reading(after.leftovers, after.records + 1, after.ways, j + 1, outcome)
            if reading.rank == found.rank:
                found = _Reading(found.leftovers, found.records, 2, found.behind, found.outcome)
            elif reading.rank < found.rank:
                found = reading
        return found

    def _segment(self, i: int, j: int) -> Outcome | None:
        rows = self._rows[i : j + 1]
        if i == j:
            return None if rows[0].outcome is None or _bad_row(rows[0]) else rows[0].outcome
        spare = sum(len(row.fields) - 1 for row in rows) - (self._plan.width - 1)
        if not self._closes[j] or spare < 0 or self.budget < 0:
            return None
        self.budget -= spare + 1
        raw, number = "\n".join(row.line.text for row in rows), rows[0].line.number
        outcome = judge(self._plan, self._builder, raw.split("|"), number, raw, len(rows))
        if outcome is not None and any(self._resembles[i + 1 : j + 1]):
            return Rejected(number, "ambiguous_record", AMBIGUOUS_RECORD, raw, len(rows))
        return outcome


def _opens(plan: Plan, row: Row) -> bool:
    """Say whether a record that goes on on the next line may begin with this one."""
    lead = plan.blocks[0][1]
    if row.line.fault or len(plan.blocks) == 1 or len(row.fields) <= lead:
        return False
    return first_fault(plan, row.fields[:lead]) is None


def _closes(plan: Plan, row: Row) -> bool:
    """Say whether a record that began on an earlier line may end with this one."""
    first, behind = plan.blocks[-1]
    return len(row.fields) > behind - first and block_fits(
        plan, row.fields, plan.blocks[-1], len(row.fields) - plan.width
    )


def _bad_row(row: Row) -> bool:
    """Say whether a line only looks like a record: set aside by itself, it may still begin a longer one."""
    return isinstance(row.outcome, Rejected) and row.outcome.reason_code in ROW_FAULTS


ROW_FAULTS = frozenset(
    str.split(
        "bad_job_id bad_time bad_duration bad_memory bad_count bad_tres unknown_state bad_exit_code bad_word "
        "invalid_utf8 no_valid_split empty_value"
    )
)
