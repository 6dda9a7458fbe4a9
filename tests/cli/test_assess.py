"""`gatehouse assess`: one file that stands alone, the same figures as JSON, a clear sentence for what is no dump."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from portal.cli.output import READER_GONE
from tests.telemetry.engine.sacct_texts import many_rows, row, text

XDMOD = "|".join(["1", "1", *["x"] * 7, "7", "2026-07-01T10:00:00", *["x"] * 15])  # a record of Open XDMoD's helper
ROOT = Path(__file__).resolve().parent.parent.parent


def gatehouse(
    *arguments: str, cwd: Path, stdin: bytes = b"", more: dict[str, str] | None = None, **pipes: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a folder, without any setting of a portal, with `more` in its environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "GATEHOUSE"))}
    return subprocess.run(
        [sys.executable, "-m", "portal.cli.main", "assess", *arguments], cwd=cwd, input=stdin, check=False,
        env=environment | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"} | (more or {}),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | pipes,
    )  # fmt: skip


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "july.txt"
    path.write_bytes(b"".join(many_rows(400)))
    return path


class Links(HTMLParser):
    """Collects what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]


def test_it_leaves_one_report_that_needs_nothing_else_and_nothing_besides(dump: Path, tmp_path: Path) -> None:
    ran = gatehouse("july.txt", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"Wrote report.html.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["july.txt", "report.html"]
    html = (tmp_path / "report.html").read_text()
    assert html.lstrip().startswith("<!doctype html>")
    links = Links()
    links.feed(html)
    assert all(link.startswith("#") for link in links.found)
    assert not {"script", "link", "iframe", "img"} & set(links.tags)
    assert not re.search(r"url\((?!['\"]?data:)|@import", html)
    assert "Who is an agent is not known" in html


def test_json_holds_the_figures_of_the_page(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("# known\nu03\nu04 # since May\n")
    ran = gatehouse("july.txt", "--json", "--out", "r.html", "--agents", "agents", cwd=tmp_path)
    content = json.loads(ran.stdout)
    figures = {one["key"]: one for section in content["sections"] for one in section["figures"]}
    assert figures["total-submissions"]["value"] == 400
    assert 0 < figures["share-submissions"]["value"] < 1
    html = (tmp_path / "r.html").read_text()
    for one in figures.values():
        assert one["title"].replace("'", "&#x27;") in html, one["key"]
    assert "Who is an agent is not known" not in html
    assert html.count("Not measured yet") == 1


def test_who_was_named_and_has_no_job_is_said_to_whoever_named_him(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("u03\nu3\nnemo\n")
    ran = gatehouse("july.txt", "--json", "--agents", "agents", cwd=tmp_path)
    assert "No job of 'nemo', 'u3', whom --agents names" in ran.stderr.decode()
    assert "Of 3 login names that were given as agents’, 2 have no job here." in json.loads(ran.stdout)["limits"]
    assert b"nemo" not in ran.stdout
    (tmp_path / "agents").write_text("u03\n")
    assert b"whom --agents" not in gatehouse("july.txt", "--json", "--agents", "agents", cwd=tmp_path).stderr


def test_json_alone_writes_no_file(dump: Path, tmp_path: Path) -> None:
    assert gatehouse("july.txt", "--json", cwd=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["july.txt"]


def test_parts_of_a_dump_and_a_pipe_give_what_the_whole_gives(dump: Path, tmp_path: Path) -> None:
    lines = dump.read_bytes().splitlines(keepends=True)
    (tmp_path / "a").write_bytes(b"".join(lines[:150]))
    whole = gatehouse("july.txt", "--json", cwd=tmp_path).stdout
    parts = gatehouse("a", "-", "--json", cwd=tmp_path, stdin=b"".join([lines[0], *lines[150:]]))
    assert parts.stdout == whole != b""


def test_text_of_people_is_nowhere_and_names_are_escaped(tmp_path: Path) -> None:
    own = {"JobName": "<b>j", "SubmitLine": "sbatch <i>s", "Comment": "<u>c", "WorkDir": "/<s>", "User": "<q>"}
    (tmp_path / "d").write_bytes(text(row(Partition="<script>alert(1)</script>", **own)))
    assert gatehouse("d", "--cluster", "<h6>", cwd=tmp_path).returncode == 0
    html = (tmp_path / "report.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "&lt;h6&gt;" in html
    assert not any(mark in html for mark in ("<script", "<b>j", "<i>s", "<u>c", "/<s>", "<q>", "&lt;q&gt;", "<h6>"))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (bytes(range(256)) * 40, "not_text"),
        (b"JobID|State\n1|COMPLETED\n", "missing_columns"),
        (row().encode() + b"\n", "missing_columns"),
        (XDMOD.encode() + b"\n", "no_jobs"),
        (b'{"jobs": [], "meta"', "not_json"),
        (text(), "no_jobs"),
        (text("nonsense"), "no_jobs"),
    ],
)
def test_what_is_no_dump_is_told_with_a_code_and_a_remedy(content: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(content)
    ran = gatehouse("d", cwd=tmp_path)
    said = ran.stderr.decode().splitlines()
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert f"[{code}]" in said[0]
    assert "TZ=UTC sacct" in said[1] and "--format xdmod" not in said[1]
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent",), "absent cannot be read: No such file or directory [unreadable]"),
        ((".",), ". cannot be read: Is a directory [unreadable]"),
        (("july.txt", "--agents", "absent"), "absent cannot be read: No such file or directory [unreadable]"),
        (("july.txt", "--agents", "empty"), "empty: there is no login name in it [no_names]"),
        (("july.txt", "--out", "no/r.html"), "no/r.html cannot be written [cannot_write]"),
        (("july.txt", "--out", "r.DOCX"), "r.DOCX: a report is no docx [unknown_form]"),
        (("july.txt", "--out", "a" * 300), f"{'a' * 300} cannot be written [cannot_write]"),
        (("/proc/self/mem",), "/proc/self/mem: It cannot be read to its end: Input/output error. [unreadable]"),
        (("july.txt", "--gpu", "/proc/self/mem"),
         "/proc/self/mem: It cannot be read to its end: Input/output error. [unreadable]"),
        (("july.txt", "--zone", "Berlin"), "--zone: 'Berlin' is no time zone. [zone_unknown]"),
        (("-", "-"), "Standard input can be read once [stdin_twice]"),
        (("july.txt", "--marker", "WCKey=x"), "july.txt: There is no column WCKey whose text could mark agents' jobs. "
         "[no_marker_column]"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_before_anything_is_written(
    arguments: Sequence[str], said: str, dump: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("# nobody\n")
    ran = gatehouse(*arguments, cwd=tmp_path)
    lines = ran.stderr.decode().splitlines()
    assert (ran.returncode, lines[0], len(lines)) == (2, said, 2)
    assert not (tmp_path / "report.html").exists()


def test_a_place_that_turns_the_report_down_is_told_in_a_sentence(dump: Path, tmp_path: Path) -> None:
    ran = gatehouse("july.txt", "--out", "/proc/report.html", cwd=tmp_path)
    lines = ran.stderr.decode().splitlines()
    assert (ran.returncode, len(lines)) == (2, 2)
    assert lines[0].startswith("/proc/report.html cannot be written") and lines[0].endswith("[cannot_write]")


def test_a_marker_that_is_none_is_a_question_of_usage(dump: Path, tmp_path: Path) -> None:
    ran = gatehouse("july.txt", "--marker", "Comment", cwd=tmp_path)
    assert ran.returncode == 2
    assert b"'Comment' is not COLUMN=VALUE" in ran.stderr


def test_a_reader_that_has_gone_ends_it_quietly(dump: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = gatehouse("july.txt", "--json", cwd=tmp_path, stdout=writer)
        with_report = gatehouse("july.txt", "--json", "--out", "r.html", cwd=tmp_path, stdout=writer)
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (READER_GONE, b"")
    assert with_report.returncode == READER_GONE
    assert (tmp_path / "r.html").exists()


def test_without_the_server_s_libraries_it_says_what_to_install(dump: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "from portal.cli.main import main; sys.exit(main(['assess', 'july.txt']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        "gatehouse assess needs the server's libraries, and polars is missing [no_server_extra]",
        "Install them with: pip install '<checkout or wheel>[server]'",
    ]


def test_without_the_templates_it_says_so_before_it_reads_and_still_gives_json(tmp_path: Path) -> None:
    (tmp_path / "july.txt").write_bytes(text(row()))
    code = (
        "import pathlib, sys; from portal.reports import assessment; assessment.PORTAL = pathlib.Path('elsewhere')\n"
        "from portal.cli.main import main; sys.exit(main(['assess', *sys.argv[1:]]))"
    )
    for arguments, status, said in ((["absent"], 2, "[no_templates]"), (["july.txt", "--json"], 0, "")):
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == status
        assert said in ran.stderr


def test_progress_is_told_on_a_terminal_alone(dump: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    try:
        assert gatehouse("july.txt", "--json", cwd=tmp_path, stderr=theirs).returncode == 0
        shown = os.read(ours, 10_000)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"] 100%" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert gatehouse("july.txt", "--json", cwd=tmp_path).stderr == b""


def test_the_report_never_takes_the_place_of_a_dump_or_a_device(dump: Path, tmp_path: Path) -> None:
    before = dump.read_bytes()
    (tmp_path / "again.txt").symlink_to(dump)
    for out in ("july.txt", "./july.txt", "again.txt"):
        ran = gatehouse("july.txt", "--out", out, cwd=tmp_path)
        assert (ran.returncode, b"[out_is_dump]" in ran.stderr) == (2, True)
    assert dump.read_bytes() == before
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE) as reader:
        try:
            assert gatehouse("july.txt", "--out", "pipe", cwd=tmp_path).returncode == 0
            assert reader.stdout is not None and b"<!doctype html>" in reader.stdout.read()
        finally:
            reader.kill()  # it would wait for a writer for ever
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link.html").symlink_to(tmp_path / "kept.html")
    assert gatehouse("july.txt", "--out", "link.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "link.html").is_symlink() and b"<!doctype html>" in (tmp_path / "kept.html").read_bytes()


def test_who_goes_away_between_two_reports_is_told_which_one_there_is(dump: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "unread")
    command = [sys.executable, "-m", "portal.cli.main", "assess", dump.name, "--out", "first.html", "--out", "unread"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as writes:
        assert writes.stderr is not None and writes.stderr.readline() == b"Wrote first.html.\n"
        writes.send_signal(signal.SIGTERM)
        said = writes.stderr.read()
    assert (writes.returncode, said) == (128 + signal.SIGTERM, b"Interrupted; only first.html was written.\n")
    assert (tmp_path / "first.html").read_text().startswith("<!doctype html>")
