"""`gatehouse assess`: a facility's first report from sacct dumps, on a laptop, without server or database.

The one command that needs the server's libraries: they are imported when it runs, not before.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

from portal.cli.output import replace_file
from portal.cli.progress import Progress

if TYPE_CHECKING:
    from portal.reports import assessment

STDIN = "-"
DEFAULT_OUT = "report.html"
INTERRUPTED = 130
_NO_LIBRARIES = (
    "gatehouse assess needs the server's libraries, and {name} is missing [no_server_extra]\n"
    "Install them with: pip install 'gatehouse[server]'"
)


class _Unusable(Exception):
    """A file or an option that cannot be used: what to say of it."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "assess", help="a facility's first report from sacct dumps: no server, nothing left but the report",
        description="Sum up dumps of `sacct -P` into one HTML file that stands alone. Nothing is sent anywhere.",
    )  # fmt: skip
    parser.add_argument("files", nargs="+", metavar="FILE", help="a dump of sacct -P, with its header; - for stdin")
    parser.add_argument("--out", metavar="FILE", help=f"where the report goes ({DEFAULT_OUT}; - for stdout)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON; HTML only if --out names it")
    parser.add_argument("--agents", metavar="FILE", help="login names that are known to run agents, one a line")
    parser.add_argument(
        "--marker", action="append", default=[], type=_marker, metavar="COLUMN=VALUE",
        help="a column that marks agents' jobs, and its text as a shell pattern; may be given again",
    )  # fmt: skip
    parser.add_argument("--cluster", default="", metavar="NAME", help="count the records of this cluster alone")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, sum up and write; 0, or 2 with a code and a remedy on stderr."""
    try:
        from portal.reports import assessment
    except ModuleNotFoundError as error:
        print(_NO_LIBRARIES.format(name=error.name), file=sys.stderr)
        return 2
    try:
        _assess(options, assessment.Known(_agents(options.agents), _markers(options.marker)))
    except assessment.Refused as refused:
        print(f"{refused.name}: {refused.detail} [{refused.code}]\n{refused.remedy}", file=sys.stderr)
        return 2
    except _Unusable as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted; nothing was written.", file=sys.stderr)
        return INTERRUPTED
    return 0


def _assess(options: argparse.Namespace, known: "assessment.Known") -> None:
    from portal.reports import assessment

    out = options.out or ("" if options.json else DEFAULT_OUT)
    if out:
        assessment.check()
        _check_out(out, options.files)
    with ExitStack() as stack:
        dumps = list(_open(options.files, stack))
        progress = stack.enter_context(Progress([(name, stream) for name, stream in dumps]))
        content = assessment.assess(
            dumps, known=known, cluster=options.cluster, now_s=int(time.time()), note=progress.note
        )  # fmt: skip
    if options.json:
        print(json.dumps(content.as_json(), indent=1, ensure_ascii=False))
    if out == STDIN:
        print(assessment.draw(content), end="")
    elif out:
        replace_file(Path(out), assessment.draw(content))
        print(f"Wrote {out}.", file=sys.stderr)


def _open(names: list[str], stack: ExitStack) -> Iterator[tuple[str, IO[bytes]]]:
    """Open every dump before any is read, so that a wrong name costs no time."""
    if names.count(STDIN) > 1:
        raise _Unusable("Standard input can be read once [stdin_twice]\nGive - only once.")
    for name in names:
        if name == STDIN:
            yield "standard input", sys.stdin.buffer
            continue
        try:
            stream = Path(name).open("rb")  # noqa: SIM115 - the stack closes it
        except OSError as error:
            raise _Unusable(_unreadable(name, error)) from None
        yield name, stack.enter_context(stream)


def _agents(name: str | None) -> frozenset[str]:
    """Read login names, one a line; `#` begins a remark."""
    if name is None:
        return frozenset()
    try:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _Unusable(_unreadable(name, error)) from None
    users = frozenset(filter(None, (line.partition("#")[0].strip() for line in lines)))
    if not users:
        raise _Unusable(f"{name}: there is no login name in it [no_names]\nWrite one login name a line.")
    return users


def _marker(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not (column.strip() and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=VALUE, as in 'Comment=*agent*'")
    return column.strip(), value


def _markers(pairs: list[tuple[str, str]]) -> "tuple[assessment.Marker, ...]":
    from portal.reports import assessment

    return tuple(assessment.Marker(*pair) for pair in pairs)


def _check_out(out: str, files: list[str]) -> None:
    """Refuse a place that cannot be written to, or that is a dump, before an hour of reading. Errors: `_Unusable`."""
    folder = Path(out).parent
    if out != STDIN and (not folder.is_dir() or Path(out).is_dir()):
        raise _Unusable(f"{out} cannot be written [cannot_write]\nName a file in a folder that exists, by --out.")
    if out and out != STDIN and any(_is_same(out, name) for name in files if name != STDIN):
        raise _Unusable(f"{out} is a dump to be read [out_is_dump]\nName another file for the report, by --out.")


def _is_same(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _unreadable(name: str, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else "it is not text"
    return f"{name} cannot be read: {why} [unreadable]\nName a file that you may read, or - for standard input."
