"""A facility's first report from sacct dumps: read, summed up and drawn without database, settings or server."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final, cast

import django
from django.conf import settings
from django.template.loader import render_to_string

from portal.dashboard import formats
from portal.reports import accounting, pdf
from portal.reports.drawing import LEAD_MEASURES, lead_row, sections
from telemetry.engine.assessment.assessor import Assessor
from telemetry.engine.assessment.figures import Content, content_of
from telemetry.engine.assessment.frames import Known, Marker
from telemetry.engine.assessment.gpus import Readings
from telemetry.engine.assessment.sums import UTC as UTC_ZONE
from telemetry.engine.assessment.sums import Sums
from telemetry.engine.slurm.columns import COMMAND
from telemetry.engine.slurm.errors import FormatError

PORTAL: Final = Path(__file__).resolve().parents[1]
_REMEDY: Final = f"Make a dump with: {COMMAND}"
_SACCT: Final = "sacct"
_GPU_REMEDY: Final = (
    "Give what `sacct -X -P -o JobIDRaw,End,AdminComment` prints of jobstats, or a CSV of DCGM whose first line names "
    "timestamp, hpc_job, UUID and the fields of dcgm-exporter."
)

__all__ = [
    "Assessor", "Content", "FormatError", "Known", "Marker", "Refused", "ask_sacct", "assess", "check", "check_zone",
    "draw", "print_pdf",
]  # fmt: skip


class Refused(Exception):
    """A dump or an option that cannot be used: which one, why, a stable code and what would help."""

    def __init__(self, name: str, detail: str, code: str, remedy: str) -> None:
        super().__init__(detail)
        self.name, self.detail, self.code, self.remedy = name, detail, code, remedy


def ask_sacct(
    start: str | None, end: str | None, *, cluster: str, known: Known, now_s: int, into: IO[bytes],
    say: Callable[[str], None],
) -> tuple[str, IO[bytes]]:  # fmt: skip
    """Have this host's sacct write a dump of a span of time into a file; return it, named, ready to be read.

    It has the columns that markers are looked for in too. Errors: `Refused`.
    """
    try:
        window = accounting.window_of(start, end, now=datetime.fromtimestamp(now_s, UTC))
        accounting.ask(
            window, cluster=cluster, more=[marker.column for marker in known.markers], into=into, say=say
        )  # fmt: skip
    except accounting.NoAccounting as error:
        raise Refused("gatehouse assess", error.detail, error.code, error.remedy) from None
    into.seek(0)
    return _SACCT, into


def assess(
    dumps: Sequence[tuple[str, IO[bytes]]], *, known: Known, cluster: str, now_s: int, note: Callable[[str, int], None],
    zone: str = UTC_ZONE, gpus: Sequence[tuple[str, IO[bytes]]] = (), asked: bool = False,
) -> Content:  # fmt: skip
    """Read named dumps and return what they say; `note` is told the name and how many bytes of it were read.

    Hours of the week are those of `zone`; `gpus` are exports of GPU use; `asked` says that the dumps are what this
    host's sacct answered. Errors: `Refused` where one is no dump, or where none holds a job.
    """
    readings = _read_gpus(gpus, note) if gpus else None
    with ExitStack() as stack:
        settled = [(name, _settle(name, source, stack)) for name, source in dumps]
        begins = [source.tell() for _, source in settled]
        assessor: Assessor | None = Assessor(now_s=now_s, known=known, cluster=cluster, zone=zone, readings=readings)
        while assessor is not None:
            last = assessor
            for begin, (name, source) in zip(begins, settled, strict=True):
                source.seek(begin)
                _read(last, name, source, note)
            assessor = last.again()
        found = last.finish()
    if asked and not found.jobs:
        raise Refused(_SACCT, "It shows you no job of that time.", "no_jobs", "Give an earlier --start.")
    if not found.jobs and found.lines.others:
        raise _all_of_others(cluster, found.lines.others)
    if not found.jobs:
        reasons = ", ".join(f"{count:,} {code}" for code, count in found.lines.rejected.most_common(3))
        said = f"There is no job in it ({reasons or 'no record at all'})."
        raise Refused("all files", said, "no_jobs", _REMEDY)
    return content_of(found, cluster=cluster, asked=asked)


def _read_gpus(files: Sequence[tuple[str, IO[bytes]]], note: Callable[[str, int], None]) -> Readings:
    readings = Readings()
    for name, source in files:
        try:
            readings.read(cast(BinaryIO, source), note=lambda offset, name=name: note(name, offset))  # type: ignore[misc]
        except FormatError as error:
            raise Refused(name, error.detail, error.code, _GPU_REMEDY) from None
        except OSError as error:
            raise _unreadable(name, error) from None
    return readings


def _read(assessor: Assessor, name: str, source: IO[bytes], note: Callable[[str, int], None]) -> None:
    try:
        assessor.read(cast(BinaryIO, source), note=lambda offset: note(name, offset))
    except FormatError as error:
        raise Refused(name, error.detail, error.code, error.remedy or _REMEDY) from None
    except OSError as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: OSError) -> Refused:
    """Return the refusal of a file that its disk or server gives up amid reading."""
    return Refused(name, f"It cannot be read to its end: {error.strerror}.", "unreadable", "Copy it and name the copy.")


def _settle(name: str, source: IO[bytes], stack: ExitStack) -> IO[bytes]:
    """Return a source that can be read twice: of a pipe a copy, in a file without a name."""
    if source.seekable():
        return source
    copy = stack.enter_context(TemporaryFile())  # noqa: SIM115 - the stack closes it
    try:
        copyfileobj(source, copy)
        copy.seek(0)
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        remedy = "Name a file, or set TMPDIR to a folder with more room."
        raise Refused(name, "There is no room for a copy of it.", "no_room", remedy) from None
    return copy


def _all_of_others(cluster: str, others: Counter[str]) -> Refused:
    """Return the refusal of dumps that tell of other clusters alone; their names are theirs, so shown as printable."""
    names = [f"{ascii(name[:64])[1:-1]} ({count:,})" for name, count in others.most_common(5)]
    rest = f" and {len(others) - 5} more" if len(others) > 5 else ""
    said = f"No record is of cluster {cluster}; those there are of {', '.join(names)}{rest}."
    return Refused("all files", said, "other_cluster", "Give one of these names to --cluster, or leave --cluster out.")


def check_zone(zone: str) -> None:
    """Refuse a name that is no time zone's. Errors: `Refused`."""
    try:
        Sums(zone)
    except ValueError:
        said = f"{ascii(zone)[:60]} is no time zone."
        raise Refused("--zone", said, "zone_unknown", "Give a name of the tz database, as Europe/Berlin.") from None


def check(*, as_pdf: bool = False) -> None:
    """Say before an hour of reading when a report could not be drawn. Errors: `Refused`."""
    if not (PORTAL / "templates" / "reports" / "assessment.html").is_file():
        raise Refused(
            "gatehouse assess", "The templates of the report are not installed.", "no_templates",
            "Install Gatehouse anew, from a wheel or a checkout, or ask for --json, which needs none.",
        )  # fmt: skip
    if as_pdf:
        try:
            pdf.load_printer()
        except pdf.CannotPrint as error:
            raise Refused("gatehouse assess", error.detail, "no_pdf", error.remedy) from None


def draw(content: Content, *, made: datetime | None = None) -> str:
    """Return the report as one HTML document that needs nothing else."""
    _prepare_templates()
    plain = content.as_json()
    figures = {figure["key"]: figure for figure in plain["sections"][0]["figures"]}
    css = (PORTAL / "static" / "portal.css").read_text(encoding="utf-8")
    context = {
        "content": plain, "sections": sections(plain), "lead": _lead(figures),
        "lead_rest": "Not attributed", "css": css,
        "made": formats.day((made or datetime.now(UTC)).date(), year=True),
    }  # fmt: skip
    return render_to_string("reports/assessment.html", context)


def print_pdf(html: str) -> bytes:
    """Return a report that `draw` drew as PDF; `check` said whether that can be done."""
    return pdf.print_html(html)


def _lead(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the headline picture: agents' share of each measure, where anything is known of agents."""
    shares = {title: figures[f"share-{title}"] for title in LEAD_MEASURES}
    return [lead_row(title, figure) for title, figure in shares.items() if figure["value"] is not None]


def _prepare_templates() -> None:
    """Give the house's templates a Django to be drawn by, unless there is one: no apps, no database, no files."""
    if settings.configured:
        return
    library = {"libraries": {"gatehouse": "portal.templatetags.gatehouse"}}
    backend = {"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [PORTAL / "templates"]}
    settings.configure(TEMPLATES=[backend | {"OPTIONS": library}], INSTALLED_APPS=[], USE_TZ=True, TIME_ZONE="UTC")
    django.setup()
