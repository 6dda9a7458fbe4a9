"""`gatehouse assess`: a facility's first report from sacct dumps, on a laptop, without server or database.

The one command that needs the server's libraries: they are imported when it runs, not before.
"""

import argparse
import errno
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from portal.cli.files import STDIN, Unusable, cannot_write, check_outs, check_stdin, open_all, read_names
from portal.cli.output import replace_file
from portal.cli.progress import Progress

if TYPE_CHECKING:
    from portal.reports import assessment

DEFAULT_OUT = "report.html"
_OTHER_FORMS = frozenset({".csv", ".doc", ".docx", ".json", ".md", ".odt", ".ods", ".rtf", ".txt", ".xls", ".xlsx"})
_STDOUT = "standard output"
_NAMED = 5  # login names in a message
_NO_LIBRARIES = (
    "gatehouse assess needs the server's libraries, and {name} is missing [no_server_extra]\n"
    "Install them with: pip install '<checkout or wheel>[server]'"
)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "assess", help="a facility's first report from sacct: no server, nothing left but the report",
        description="Sum up dumps of `sacct -P`, or without any what sacct shows you, into one report that stands "
        "alone. Nothing is sent anywhere.",
    )  # fmt: skip
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a dump: sacct -P with its header, sacct --json, or XDMoD's; - for stdin",
    )
    parser.add_argument("--start", metavar="DAY", help="without FILE: ask sacct from then on (30 days ago; UTC)")
    parser.add_argument("--end", metavar="DAY", help="without FILE: ask sacct until then (now; UTC)")
    parser.add_argument(
        "--out", action="append", metavar="FILE",
        help=f"where the report goes ({DEFAULT_OUT}; - for stdout), as PDF if it ends in .pdf; may be given again",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures as JSON; HTML only if --out names it")
    parser.add_argument("--agents", metavar="FILE", help="login names that are known to run agents, one a line")
    parser.add_argument(
        "--marker", action="append", default=[], type=_marker, metavar="COLUMN=VALUE",
        help="a column that marks agents' jobs, and its text as a shell pattern; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--cluster", default="", metavar="NAME", help="count (and ask for) this cluster's records alone"
    )
    parser.add_argument(
        "--zone", default="UTC", metavar="ZONE", help="of the hours of the week, as Europe/Berlin (UTC)"
    )
    parser.add_argument(
        "--gpu", action="append", default=[], metavar="FILE",
        help="an export of jobstats or DCGM: what jobs did with their GPUs; may be given again",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, sum up and write; 0, 2 with a code and a remedy on stderr, or what a shell reports of a signal."""
    # Whose terminal closes wants nothing left either: not the sacct that was asked, not half a report.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has it ignored
            signal.signal(number, _interrupt)
    written: list[str] = []
    try:
        return _run(options, written)
    except KeyboardInterrupt as interrupt:
        told = f"only {', '.join(written)}" if written else "nothing"
        print(f"Interrupted; {told} was written.", file=sys.stderr)
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


def _run(options: argparse.Namespace, written: list[str]) -> int:
    try:
        from portal.reports import assessment
    except ModuleNotFoundError as error:
        print(_NO_LIBRARIES.format(name=error.name), file=sys.stderr)
        return 2
    try:
        users = read_names(options.agents) if options.agents is not None else frozenset()
        _assess(options, assessment.Known(users, _markers(options.marker)), written)
    except assessment.Refused as refused:
        print(f"{refused.name}: {refused.detail} [{refused.code}]\n{refused.remedy}", file=sys.stderr)
        return 2
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _assess(options: argparse.Namespace, known: "assessment.Known", written: list[str]) -> None:
    """Read, sum up and write; `written` is told of each place that holds its whole report."""
    from portal.reports import assessment

    assessment.check_zone(options.zone)
    check_stdin([*options.files, *options.gpu])
    outs = options.out or ([] if options.json else [DEFAULT_OUT])
    if outs:
        assessment.check(as_pdf=any(map(_is_pdf, outs)))
        check_outs(outs, [*options.files, *options.gpu])
        _check_forms(outs)
    now_s = int(time.time())
    with ExitStack() as stack:
        progress = stack.enter_context(Progress())
        dumps = _dumps(options, known, now_s, progress, stack)
        gpus = list(open_all(options.gpu, sys.stdin.buffer, stack))
        progress.expect([*gpus, *dumps])
        content = assessment.assess(
            dumps, known=known, cluster=options.cluster, now_s=now_s, note=progress.note, zone=options.zone,
            gpus=gpus, asked=not options.files,
        )  # fmt: skip
        drawn = _draw(content, outs, progress)
    if content.absent:
        more = f" and {len(content.absent) - _NAMED} more" if len(content.absent) > _NAMED else ""
        names = ", ".join(map(ascii, content.absent[:_NAMED]))
        print(f"No job of {names}{more}, whom --agents names: is that how Slurm writes them?", file=sys.stderr)
    for out, report in drawn.items():
        _write(out, report)
        written.append(_STDOUT if out == STDIN else out)
        if out != STDIN:
            print(f"Wrote {out}.", file=sys.stderr)
    if options.json:  # last: whoever reads the figures may stop before their end, as `head` does
        print(json.dumps(content.as_json(), indent=1, ensure_ascii=False))
        written.append(_STDOUT)


def _dumps(
    options: argparse.Namespace, known: "assessment.Known", now_s: int, progress: Progress, stack: ExitStack
) -> list[tuple[str, IO[bytes]]]:
    """Open the files that are named, or have sacct write what there is."""
    if options.files:
        if options.start or options.end:
            raise Unusable("--start and --end are for sacct, not for files [window_of_files]\nLeave them out.")
        return list(open_all(options.files, sys.stdin.buffer, stack))
    import tempfile

    from portal.reports import assessment

    into = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    return [
        assessment.ask_sacct(
            options.start, options.end, cluster=options.cluster, known=known, now_s=now_s, into=into, say=progress.say
        )
    ]  # fmt: skip


def _draw(content: "assessment.Content", outs: list[str], progress: Progress) -> dict[str, bytes]:
    """Return what goes into each place: PDF where its name says so, HTML elsewhere."""
    from portal.reports import assessment

    if not outs:
        return {}
    progress.say("Drawing the report …")
    html = assessment.draw(content)
    kinds = {False: html.encode()}
    if any(map(_is_pdf, outs)):
        kinds[True] = assessment.print_pdf(html)
    return {out: kinds[_is_pdf(out)] for out in outs}


def _write(out: str, report: bytes) -> None:
    if out == STDIN:
        sys.stdout.write(report.decode())
        return
    try:
        replace_file(Path(out), report)
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ENOSPC):  # `writing_carefully` knows them
            raise
        raise Unusable(cannot_write(out, error.strerror or "")) from None


def _check_forms(outs: Sequence[str]) -> None:
    """Refuse a name that promises something else than what is written there. Errors: `Unusable`."""
    for out in outs:
        suffix = Path(out).suffix.lower()
        if suffix in _OTHER_FORMS:
            raise Unusable(
                f"{out}: a report is no {suffix[1:]} [unknown_form]\n"
                "End --out in .html or .pdf; --json prints the figures to the screen, or where you send that."
            )


def _is_pdf(out: str) -> bool:
    return out.lower().endswith(".pdf")


def _marker(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not (column.strip() and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=VALUE, as in 'Comment=*agent*'")
    return column.strip(), value


def _markers(pairs: list[tuple[str, str]]) -> "tuple[assessment.Marker, ...]":
    from portal.reports import assessment

    return tuple(assessment.Marker(*pair) for pair in pairs)
