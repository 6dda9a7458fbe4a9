"""`gatehouse assess` without a file asks sacct itself: a day at a time, in UTC, and believes no half answer."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.reports import accounting
from tests.cli.test_assess import ROOT, gatehouse
from tests.telemetry.engine.sacct_texts import COLUMNS, many_rows, row, text

SACCT = """#!/bin/sh
echo "TZ=$TZ SACCT_FORMAT=$SACCT_FORMAT $*" >> {folder}/calls
for word in "$@"; do [ "$word" = --noheader ] && without=1; done
{body}
"""
PRINT = 'if [ -z "$without" ]; then head -n 1 {folder}/dump; fi; tail -n +2 {folder}/dump'


class Site:
    """A folder with a sacct of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.work.mkdir()

    def has(self, body: str, dump: bytes = b"") -> None:
        (self.folder / "dump").write_bytes(dump)
        (self.folder / "bin").mkdir()
        script = self.folder / "bin" / "sacct"
        script.write_text(SACCT.format(folder=self.folder, body=body.format(folder=self.folder)))
        script.chmod(0o755)

    def assess(self, *options: str) -> subprocess.CompletedProcess[bytes]:
        path = f"{ROOT}/deploy/agent-path:{self.folder}/bin:/usr/bin:/bin"  # what agents have first is passed by
        return gatehouse(*options, cwd=self.work, more={"PATH": path, "SACCT_FORMAT": "JobID", "TZ": "Asia/Tokyo"})

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_it_asks_for_every_day_of_the_window_and_counts_each_job_once(site: Site) -> None:
    site.has(PRINT, b"".join(many_rows(200)))
    ran = site.assess("--start", "2026-07-01T12:00", "--end", "2026-07-04", "--cluster", "aster", "--json")
    assert (ran.returncode, ran.stderr) == (0, b"")
    figures = {
        one["key"]: one for section in json.loads(ran.stdout)["sections"] for one in section["figures"]
    }  # fmt: skip
    assert figures["total-submissions"]["value"] == 200
    read = {one["key"]: one["values"][0] for one in figures["records"]["rows"]}
    assert read == {"counted": 200, "live": 0, "repeated": 400, "steps": 0, "aside": 0}
    spans = [("2026-07-01T12:00:00", "2026-07-02T00:00:00"), ("2026-07-02T00:00:00", "2026-07-03T00:00:00"),
             ("2026-07-03T00:00:00", "2026-07-04T00:00:00")]  # fmt: skip
    for call, (first, last) in zip(site.calls, spans, strict=True):
        assert call.startswith("TZ=UTC SACCT_FORMAT= --duplicates --parsable2 --allusers ")
        assert f"--starttime {first} --endtime {last} " in call and "--clusters=aster" in call
    assert ["--noheader" in call for call in site.calls] == [False, True, True]


def test_without_a_window_it_asks_for_the_thirty_days_before_now_and_leaves_the_report_alone(site: Site) -> None:
    site.has(PRINT, text(row()))
    ran = site.assess()
    assert (ran.returncode, ran.stderr) == (0, b"Wrote report.html.\n")
    assert [path.name for path in site.work.iterdir()] == ["report.html"]
    assert "their own alone" in (site.work / "report.html").read_text()
    words = [call.split() for call in site.calls]
    assert len(words) in (30, 31)
    first, last = (
        datetime.fromisoformat(call[call.index(name) + 1])
        for call, name in ((words[0], "--starttime"), (words[-1], "--endtime"))
    )
    assert (last - first).days == 30


@pytest.mark.parametrize(
    ("body", "said", "remedy"),
    [
        ("exit 3", "sacct: it ended with 3. [slurm_unavailable]", "Run sacct by hand"),
        (PRINT + "; [ -n \"$without\" ] && exit 1; true", "sacct: it ended with 1. [slurm_unavailable]", "by hand"),
        (PRINT + "; echo 'sacct: error: slurm_persist_conn_open: Connection refused' >&2",
         "sacct: slurm_persist_conn_open: Connection refused. [slurm_unreachable]", "scontrol ping"),
        ("head -c 300 {folder}/dump", "sacct's answer for 2026-07-01 ends amid a line. [slurm_cut]", "by hand"),
        ("head -n 1 {folder}/dump", "It shows you no job of that time. [no_jobs]", "Give an earlier --start."),
        ("echo 'Slurm accounting storage is disabled' >&2; exit 1",
         "sacct: Slurm accounting storage is disabled. [slurm_without_accounting]", "slurmdbd"),
    ],
)  # fmt: skip
def test_half_an_answer_is_none(site: Site, body: str, said: str, remedy: str) -> None:
    site.has(body, text(row()))
    ran = site.assess("--start", "2026-07-01", "--end", "2026-07-03")
    first, second = ran.stderr.decode().splitlines()
    assert (ran.returncode, first.partition(": ")[2]) == (2, said)
    assert remedy in second
    assert list(site.work.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "This host has no sacct. [slurm_missing]"),
        (("--start", "July"), "--start 'July' is no day. [window_unreadable]"),
        (("--end", "0001-01-02"), "--end '0001-01-02' is no day. [window_unreadable]"),
        (("--start", "2026-07-02", "--end", "2026-07-02"), "The window ends before it starts. [window_empty]"),
        (("--start", "2020-01-01", "--end", "2026-07-02"), "The window is longer than 800 days. [window_long]"),
    ],
)
def test_what_cannot_be_asked_is_told(site: Site, options: tuple[str, ...], said: str) -> None:
    (site.folder / "bin").mkdir()
    ran = gatehouse(*options, cwd=site.work, more={"PATH": str(site.folder / "bin")})
    lines = ran.stderr.decode().splitlines()
    assert (ran.returncode, lines[0], len(lines)) == (2, f"gatehouse assess: {said}", 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_who_goes_away_leaves_neither_a_report_nor_the_sacct_that_was_asked(site: Site, number: int) -> None:
    os.mkfifo(site.folder / "asked")
    site.has("echo $$ > {folder}/asked; exec sleep 600")
    environment = {"PATH": f"{site.folder}/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "TMPDIR": str(site.work)}
    command = [sys.executable, "-m", "portal.cli.main", "assess", "--start", "2026-07-01"]

    def hear() -> None:
        signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it, as `nohup` does

    with subprocess.Popen(command, cwd=site.work, env=environment, stderr=subprocess.PIPE, preexec_fn=hear) as asks:
        sacct = int((site.folder / "asked").read_text())
        asks.send_signal(number)
        _, said = asks.communicate()
    assert (asks.returncode, said) == (128 + number, b"Interrupted; nothing was written.\n")
    with pytest.raises(ProcessLookupError):
        os.kill(sacct, 0)
    assert list(site.work.iterdir()) == []


def test_a_column_that_marks_agents_jobs_is_asked_for_once(site: Site) -> None:
    columns = [*COLUMNS, "WCKey"]
    site.has(PRINT, text(row(columns, WCKey="agent"), columns=columns))
    options = ("--start", "2026-07-01", "--end", "2026-07-02", "--marker", "WCKey=agent", "--marker", "comment=x")
    assert site.assess(*options, "--json").returncode == 0
    (call,) = site.calls
    asked = call.rpartition("--format=")[2].split(",")
    assert asked[-1] == "WCKey" and [name for name in asked if name.lower() == "comment"] == ["Comment"]


def test_a_window_is_no_option_of_a_file(site: Site) -> None:
    (site.work / "july.txt").write_bytes(text(row()))
    ran = site.assess("july.txt", "--start", "2026-07-01")
    assert (ran.returncode, b"[window_of_files]" in ran.stderr) == (2, True)


def test_a_window_is_cut_at_every_midnight_and_never_ends_after_now() -> None:
    now = datetime(2026, 7, 3, 9, 30, 7, tzinfo=UTC)
    days = list(accounting.window_of("2026-07-01T22:15", "2026-08-01", now=now).days())
    assert [f"{day.starts:%dT%H:%M:%S} {day.ends:%dT%H:%M:%S}" for day in days] == [
        "01T22:15:00 02T00:00:00", "02T00:00:00 03T00:00:00", "03T00:00:00 03T09:30:07",
    ]  # fmt: skip
