"""How the dumps were read: every record is counted somewhere."""

from typing import Final

from telemetry.engine.assessment.figures.kinds import Reading
from telemetry.engine.plain import plain
from telemetry.engine.report_content import Column, Figure, Row

_WORDS: Final = {
    "other_cluster": "Of another cluster", "out_of_range": "A number that no job can have",
    "past_date": "A time before 2000", "future_date": "A time more than a day ahead",
    "truncated_last_line": "The file ends within the line", "line_too_long": "A line without an end in reach",
    "record_too_long": "A record without an end in reach", "binary_data": "Not text", "invalid_utf8": "Damaged text",
    "too_few_columns": "Columns are missing", "no_valid_split": "Cannot be cut into its columns",
    "ambiguous_split": "Can be cut into its columns in several ways", "empty_value": "A value is missing",
    "ambiguous_record": "Can be put together in several ways", "unknown_state": "A state that Slurm does not have",
    "end_before_start": "Ended before it started", "no_end_time": "Ended, but not said when",
    "no_submit_time": "Not said when it was submitted", "no_user": "Not said whose it was",
    "raw_id_unknown": "No job number of its own",
}  # fmt: skip


def figures(reading: Reading) -> list[Figure]:
    """Return what was read, and what was set aside and why."""
    found = reading.found
    aside = sum(found.lines.rejected.values())
    records = found.lines.jobs + found.lines.steps + aside
    kinds = {
        "counted": ("Jobs counted", found.jobs - found.live),
        "live": ("Jobs counted that had not ended", found.live),
        "repeated": ("Told of before, counted once", found.repeated),
        "steps": ("Steps of jobs, not counted", found.lines.steps),
        "aside": ("Set aside", aside),
    }
    rows = tuple(Row(key, words, (count,)) for key, (words, count) in kinds.items())
    columns = (Column("records", "Records", "records", adds_up=True),)
    return [
        Figure("records", "Records read", "Lines of the dumps, those put together that belong to one record.",
               "all records", "records", records, note=_told(found.lines.warnings), columns=columns, rows=rows),
        Figure("set-aside", "Records set aside", "Not counted above, each for one reason; nothing is guessed.",
               "all records", "records", aside, columns=columns, rows=_reasons(reading)),
    ]  # fmt: skip


def _told(warnings: set[str]) -> str:
    """Return what readers had to say; it quotes the dumps, so only what can be shown."""
    return "; ".join(plain(warning[:120]) for warning in sorted(warnings)[:3])


def _reasons(reading: Reading) -> tuple[Row, ...]:
    counts = sorted(reading.found.lines.rejected.items(), key=lambda each: (-each[1], each[0]))
    return tuple(Row(code, _WORDS.get(code, code.replace("_", " ").capitalize()), (count,)) for code, count in counts)
