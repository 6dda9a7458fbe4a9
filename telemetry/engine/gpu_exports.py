"""Exports of GPU use: jobstats and DCGM, line by line, into one normal form. Every line is read, skipped or rejected.

jobstats (https://github.com/PrincetonUniversity/jobstats) keeps a summary of each ended job in Slurm's AdminComment:
`JS1:` and the base64 of gzipped JSON. It comes as `sacct -X -P -o JobIDRaw,End,AdminComment` writes it (`|`), or flat,
one line a job and GPU. DCGM comes as samples, one line a GPU and instant, under the field names of dcgm-exporter;
samples of one job and GPU become one reading, each weighing the same.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from telemetry.engine import jobstats
from telemetry.engine.gpu_use import GpuReading, find_fault, is_numbered
from telemetry.engine.slurm.errors import FormatError, RowError
from telemetry.engine.slurm.records import Rejected

FORMATS: Final = ("jobstats", "dcgm")
MIB: Final = 2**20
_DCGM_BLANK: Final = 2**47  # DCGM writes values of this size and more where it has none


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that speaks of no GPU of any job; `reason` says which sort."""

    line_no: int
    reason: str


Outcome: TypeAlias = GpuReading | Rejected | Skipped
Cells = Mapping[str, str]
# What a column may be called, first come first served. Compared in lower case.
_JOB = ("jobidraw", "jobid", "job_id", "job", "hpc_job", "slurm_job_id")
_NODE = ("node", "host", "hostname", "nodename")
_GPU = ("uuid", "gpu_uuid", "gpu", "gpu_id", "gpu_index", "minor_number")
_MODEL = ("modelname", "model", "gpu_model", "gpu_type")
_END = ("end", "timestamp", "time", "measured")


def read_export(lines: Iterable[str], *, format: str) -> Iterator[Outcome]:
    """Read an export whose first line names its columns. Each line says when it was measured, for ids recycle.

    Errors: `FormatError` where it cannot be read as `format` at all.
    """
    numbered = enumerate(lines, start=1)
    header = next(numbered, (0, ""))[1]
    delimiter = "|" if "|" in header else ","
    names = [name.strip().lower() for name in header.strip().lstrip("\ufeff").split(delimiter)]
    if format == "dcgm":
        return _read_dcgm(numbered, names, delimiter)
    if format != "jobstats":
        raise FormatError("format_unknown", f"{format[:40]!r} is no format.", remedy=f"One of {', '.join(FORMATS)}.")
    if "admincomment" in names:
        return _read_lines(numbered, names, delimiter, _summary_of, (_JOB, _END))
    wanted = (_JOB, _END, _GPU, ("gpu_utilization",), ("gpu_used_memory",), ("gpu_total_memory",))
    return _read_lines(numbered, names, delimiter, _flat_jobstats, wanted)


def _read_lines(
    numbered: Iterable[tuple[int, str]],
    names: Sequence[str],
    delimiter: str,
    read: Callable[[Cells], Sequence[GpuReading] | str],
    wanted: Sequence[Sequence[str]],
) -> Iterator[Outcome]:
    """Read each line by itself: a quote that nobody closes spoils its own line only."""
    missing = [columns[0] for columns in wanted if not set(columns) & set(names)]
    if missing:
        raise FormatError(
            "columns_missing", f"Columns missing: {', '.join(missing)}.", missing=missing,
            remedy="The first line must name the columns.",
        )  # fmt: skip
    return _outcomes(numbered, names, delimiter, read)


def _outcomes(
    numbered: Iterable[tuple[int, str]],
    names: Sequence[str],
    delimiter: str,
    read: Callable[[Cells], Sequence[GpuReading] | str],
) -> Iterator[Outcome]:
    for number, line in numbered:
        text = line.rstrip("\r\n")
        if not text.strip():
            yield Skipped(number, "empty")
            continue
        try:
            found = read(_cells_of(text, names, delimiter))
        except RowError as error:
            yield Rejected(number, error.code, error.detail, text)
            continue
        if isinstance(found, str):
            yield Skipped(number, found)
            continue
        for reading in found:
            fault = find_fault(reading)
            yield Rejected(number, fault, f"GPU {reading.gpu[:100]}", text) if fault else reading


def _cells_of(text: str, names: Sequence[str], delimiter: str) -> Cells:
    try:
        values = text.split("|") if delimiter == "|" else next(csv.reader([text], strict=True))
    except csv.Error as error:
        raise RowError("malformed", str(error)) from None
    if len(values) != len(names):
        raise RowError("columns", f"{len(values)} columns where the first line names {len(names)}.")
    return dict(zip(names, (value.strip() for value in values), strict=True))


def _summary_of(cells: Cells) -> Sequence[GpuReading] | str:
    """Read a line of sacct with the summary that jobstats keeps."""
    comment = cells["admincomment"]
    if not comment.startswith(jobstats.MARK):
        return "no_summary"
    if "." in _first(cells, _JOB):
        return "step"
    if comment in jobstats.EMPTY:
        return "empty_summary"
    job, found = _job_of(cells), list(jobstats.read_summary(comment))
    if not found:
        return "no_gpu"
    measured_s = _time_of(cells)
    return [
        _jobstats_reading(job, f"{node}:{gpu}", measured_s, compute, used, total, "")
        for node, gpu, compute, used, total in found
    ]


def _flat_jobstats(cells: Cells) -> Sequence[GpuReading] | str:
    used, total = (_number(cells, name) for name in ("gpu_used_memory", "gpu_total_memory"))
    compute = _number(cells, "gpu_utilization")
    reading = _jobstats_reading(
        _job_of(cells), _gpu_of(cells), _time_of(cells), compute, used, total, _first(cells, _MODEL)
    )
    return [reading]


def _jobstats_reading(
    job: int, gpu: str, measured_s: int, compute: float, used: float, total: float, model: str
) -> GpuReading:
    """jobstats keeps the mean of compute but of memory the peak alone: that stands in for the mean, and says so."""
    if not total > 0:
        raise RowError("memory_out_of_range", f"GPU {gpu[:100]} has a total memory of {total:g} bytes.")
    return GpuReading(
        job, gpu, compute, 100 * used / total, measured_s, _whole(used), _whole(total), model, memory_is_peak=True
    )


@dataclass(slots=True)
class _Samples:
    """What has been seen of one job's one GPU so far."""

    model: str
    number: int = 0
    compute: float = 0.0
    memory: float = 0.0
    peak: float = 0.0
    total: float = 0.0
    last_s: int = 0


def _read_dcgm(numbered: Iterable[tuple[int, str]], names: Sequence[str], delimiter: str) -> Iterator[Outcome]:
    seen: dict[tuple[int, str], _Samples] = {}
    compute = ("dcgm_fi_prof_gr_engine_active", "dcgm_fi_dev_gpu_util")
    total = ("dcgm_fi_dev_fb_total", "dcgm_fi_dev_fb_free")
    wanted = (_JOB, ("timestamp", *_END), _GPU, compute, ("dcgm_fi_dev_fb_used",), total)
    return _sum_samples(_read_lines(numbered, names, delimiter, _sample, wanted), seen)


def _sum_samples(outcomes: Iterator[Outcome], seen: dict[tuple[int, str], _Samples]) -> Iterator[Outcome]:
    """Pass on what is no sample at once, and the means of samples at the end; memory grows with jobs, not samples."""
    for outcome in outcomes:
        if not isinstance(outcome, GpuReading):
            yield outcome
            continue
        one = seen.setdefault((outcome.raw_job_id, outcome.gpu), _Samples(outcome.model))
        one.number += 1
        one.compute += outcome.compute_percent
        one.memory += outcome.memory_percent
        one.peak = max(one.peak, outcome.peak_memory_bytes or 0)
        one.total = max(one.total, outcome.total_memory_bytes or 0)
        one.last_s = max(one.last_s, outcome.measured_s)
    for (job, gpu), one in seen.items():
        means = min(100.0, one.compute / one.number), min(100.0, one.memory / one.number)
        yield GpuReading(job, gpu, *means, one.last_s, int(one.peak), int(one.total), one.model)


def _sample(cells: Cells) -> Sequence[GpuReading] | str:
    if not _first(cells, _JOB):
        return "no_job"
    active = cells.get("dcgm_fi_prof_gr_engine_active", "")
    compute = 100 * _number(cells, "dcgm_fi_prof_gr_engine_active") if active else _number(
        cells, "dcgm_fi_dev_gpu_util"
    )  # fmt: skip
    used = _number(cells, "dcgm_fi_dev_fb_used")
    total = _number(cells, "dcgm_fi_dev_fb_total") if cells.get("dcgm_fi_dev_fb_total") else (
        used + _number(cells, "dcgm_fi_dev_fb_free") + _reserved(cells)
    )  # fmt: skip
    if max(compute, used, total) >= _DCGM_BLANK:
        raise RowError("value_blank", "DCGM had no value.")
    if not total > 0:
        raise RowError("memory_out_of_range", "The GPU has no memory.")
    gpu, model = _gpu_of(cells), _first(cells, _MODEL)
    used, total = used * MIB, total * MIB
    measured_s = _time_of(cells)
    return [
        GpuReading(
            _job_of(cells), gpu, compute, 100 * used / total, measured_s, _whole(used), _whole(total), model
        )
    ]  # fmt: skip


def _reserved(cells: Cells) -> float:
    return _number(cells, "dcgm_fi_dev_fb_reserved") if cells.get("dcgm_fi_dev_fb_reserved") else 0.0


def _first(cells: Cells, columns: Sequence[str]) -> str:
    return next((cells[name] for name in columns if cells.get(name)), "")


def _job_of(cells: Cells) -> int:
    text = _first(cells, _JOB)
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RowError("job_invalid", f"{text[:40]!r} is no raw job id (Slurm's JobIDRaw, SLURM_JOB_ID).")
    return int(text)


def _gpu_of(cells: Cells) -> str:
    """Name a GPU within its job: a UUID as it is, a number with its node; a slice of it by its number too."""
    gpu, node, part = _first(cells, _GPU), _first(cells, _NODE), cells.get("gpu_i_id", "")
    if not gpu:
        raise RowError("gpu_invalid", "The GPU has no name.")
    if is_numbered(gpu):
        if not node:
            raise RowError("node_missing", f"Each node has a GPU {gpu}: add a column `node`, or one of UUIDs.")
        gpu = f"{node}:{gpu}"
    return f"{gpu}/{part}" if part else gpu


def _number(cells: Cells, name: str) -> float:
    try:
        return float(cells.get(name, ""))
    except ValueError:
        raise RowError("number_invalid", f"{name} is {cells.get(name, '')[:40]!r}.") from None


def _whole(size: float) -> int:
    """Return a size in bytes; what is no size becomes -1, which `find_fault` refuses."""
    return int(size) if 0 <= size < 2**62 else -1


def _time_of(cells: Cells) -> int:
    """Read when a line was measured: epoch seconds, or ISO 8601 (UTC where it names no zone)."""
    text = _first(cells, _END)
    if not text or text in ("Unknown", "None"):
        raise RowError("time_missing", "When was it measured? The end of the job will do.")
    try:
        if text.replace(".", "", 1).isdigit():
            return int(float(text))
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise RowError("time_invalid", f"{text[:40]!r} is no time.") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
