"""What a site's own sensor writes down comes to sessions and counts, through standard input, a file or a FIFO."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from portal.cli.collect.records import Source
from tests.collector.test_run import ROOT, Portal, command, until, write_config
from tests.telemetry.engine.collector.records.sensors import FORMS, Trace, work


def dry_run(form: str, recorded: bytes, *more: str) -> tuple[list[dict[str, Any]], str, str]:
    ran = subprocess.run(
        command("--records", form, "--dry-run", "--json", *more), cwd=ROOT, input=recorded, capture_output=True,
        timeout=60, check=True,
    )  # fmt: skip
    said = ran.stdout.decode()
    return [json.loads(line) for line in said.splitlines()], said, ran.stderr.decode()


@pytest.mark.parametrize("form", FORMS)
def test_a_recorded_stream_comes_to_its_sessions_and_minutes(form: str) -> None:
    recorded = b"\n".join(FORMS[form](work())) + b"\n"
    bodies, said, errors = dry_run(form, recorded)
    assert "Collecting: the site's own sensor" in errors and "The records ended." in errors
    assert {body["mode"] for body in bodies} == {"records"}
    [session] = [each for body in bodies for each in body["sessions"] if each["end"]]
    assert (session["harness"], session["id"].partition("-")[0]) == ("claude-code", "4001")
    began, ended = (datetime.fromisoformat(session[name]) for name in ("start", "end"))
    assert (began, 60 <= (ended - began).total_seconds() <= 70) == (datetime(2026, 9, 21, 14, 13, 40, tzinfo=UTC), True)
    minutes = [(each["minute"][11:16], each["counts"]["commands"])
               for body in bodies for each in body["minutes"] if each["session"] == session["id"]]  # fmt: skip
    assert minutes == [("14:13", 9), ("14:14", 1)]
    for body in bodies:
        assert all(body["from"][:16] <= each["minute"][:16] <= body["to"] for each in body["minutes"])
    assert sum(body["health"]["lost"] for body in bodies) == 0
    assert "n33dle" not in said + errors and "/usr" not in said


def test_lines_that_cannot_be_read_are_told_by_their_number_alone() -> None:
    bodies, said, errors = dry_run("tetragon", b"n33dle\n" * 3 + b"\n".join(FORMS["tetragon"](work())) + b"\n{n33dle")
    assert "Lines that could not be read: 4." in errors and "n33dle" not in said + errors
    assert sum(body["health"]["lost"] for body in bodies) == 4


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "tetragon.log"
    path.write_bytes(b"\n".join(FORMS["tetragon"](work())))
    bodies, _, _ = dry_run("tetragon", b"", "--records-from", str(path))
    assert {each["harness"] for body in bodies for each in body["sessions"]} == {"claude-code"}


@pytest.mark.parametrize(
    ("more", "code"),
    [(("--records-from", "/nonexistent"), "records_unreadable"), (("--records-from", "/usr"), "records_unreadable")],
)  # fmt: skip
def test_what_cannot_be_is_told_with_a_remedy(more: tuple[str, ...], code: str) -> None:
    ran = subprocess.run(
        command("--records", "falco", "--dry-run", *more),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 2 and f"[{code}]" in ran.stderr and "Traceback" not in ran.stderr


# --- as it happens -------------------------------------------------------------------------------------------
def test_what_a_file_is_replaced_by_is_read_if_it_can_be(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"old\n")
    source = Source(str(path), follow=True)
    path.rename(tmp_path / "audit.log.1")
    path.mkdir()
    assert [source.read(0.01) for _ in range(3)] == [b""] * 3, "a folder is none"
    path.rmdir()
    os.mkfifo(path)
    assert [source.read(0.01) for _ in range(3)] == [b""] * 3, "nobody writes to it"
    writer = os.open(path, os.O_WRONLY)
    os.write(writer, b"by a fifo\n")
    os.close(writer)
    assert source.read(0.01) == b"by a fifo\n"
    path.unlink()
    path.write_bytes(b"new\n")
    assert b"".join(source.read(0.01) or b"" for _ in range(3)) == b"new\n"


def now_lines(pid: int, *, child: int) -> bytes:
    """What Tetragon writes of a living process that we started, and of a short one under it."""
    trace = Trace()
    trace.execute(pid, os.getpid(), "/usr/local/bin/claude")
    trace.execute(child, pid, "/usr/bin/grep", "-r", "n33dle")
    lines = b"\n".join(FORMS["tetragon"](trace)) + b"\n"
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"
    told = [json.loads(line) for line in lines.splitlines()]
    for each in told:
        each["time"] = each["process_exec"]["process"]["start_time"] = now
    return b"".join(json.dumps(each).encode() + b"\n" for each in told)


def started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


class Collector:
    """A collector that follows records."""

    def __init__(self, config: Path, *more: str, stdin: int | None = None) -> None:
        self.process = subprocess.Popen(
            command("--config", str(config), *more),
            cwd=ROOT,
            stdin=stdin,
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr is not None and b"Collecting:" in self.process.stderr.readline()

    def end(self, number: signal.Signals | None = signal.SIGTERM) -> tuple[int, str]:
        if number:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said.decode()


@pytest.fixture
def living() -> Any:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    yield process.pid
    process.kill()
    process.wait(20)


@pytest.mark.parametrize("way", ["stdin", "file", "fifo"])
def test_what_is_recorded_now_is_sent_with_the_starts_that_proc_tells(
    portal: Portal, folder: Path, living: int, way: str
) -> None:
    path, config = folder / "records", write_config(folder, portal)
    if way == "fifo":
        os.mkfifo(path, 0o644)
        config = write_config(folder, portal, records="tetragon", records_from=str(path))
    elif way == "file":
        path.write_bytes(b"what was there before is passed over\n")
    more = {"stdin": ["--records", "tetragon"], "fifo": []}.get(
        way, ["--records", "tetragon", "--records-from", str(path)]
    )
    collector = Collector(config, *more, stdin=subprocess.PIPE if way == "stdin" else subprocess.DEVNULL)
    recorded = now_lines(living, child=4_100_000)
    if way == "stdin":
        assert collector.process.stdin is not None
        collector.process.stdin.write(recorded)
        collector.process.stdin.flush()
    elif way == "fifo":
        path.write_bytes(recorded[:300])  # and again by another writer
        path.write_bytes(recorded[300:])
    else:
        with path.open("ab") as file:
            file.write(recorded[:300])
        path.rename(folder / "records.1")  # it goes on in a new file of that name
        with (folder / "records.1").open("ab") as file:
            file.write(recorded[300:400])
        path.write_bytes(recorded[400:])
    status, said = collector.end()
    assert (status, "Traceback" in said) == (0, False)
    bodies = [json.loads(body) for _, body in portal.taken]
    sessions = {each["id"]: each["harness"] for body in bodies for each in body["sessions"]}
    assert sessions.get(f"{living}-{started(living)}") == "claude-code"
    name = f"{living}-{started(living)}"
    counted = [each["counts"] for body in bodies for each in body["minutes"] if each["session"] == name]
    assert [each["commands"] for each in counted] == [1] and "n33dle" not in said
    assert sum(body["health"]["lost"] for body in bodies) == 0 and {body["mode"] for body in bodies} == {"records"}


def test_the_sample_passes_on_what_a_sensor_says_and_ends_with_it(folder: Path) -> None:
    path = folder / "records"
    os.mkfifo(path, 0o644)
    sensor = subprocess.Popen([ROOT / "deploy/sensors/gatehouse-records.sh", path], stdin=subprocess.PIPE)
    assert sensor.stdin is not None
    with path.open("rb") as reader:
        sensor.send_signal(signal.SIGHUP)
        sensor.stdin.write(b"one\n")
        sensor.stdin.flush()
        assert reader.readline() == b"one\n"
        sensor.stdin.close()
        assert (reader.read(), sensor.wait(20)) == (b"", 0)


def test_a_sensor_that_ends_ends_the_collector_as_a_failure(portal: Portal, folder: Path) -> None:
    collector = Collector(write_config(folder, portal), "--records", "tetragon", stdin=subprocess.PIPE)
    assert collector.process.stdin is not None
    collector.process.stdin.close()
    collector.process.stdin = None
    status, said = collector.end(None)
    assert status == 1 and "The records ended." in said


def test_a_kill_file_ends_it(portal: Portal, folder: Path) -> None:
    collector = Collector(write_config(folder, portal), "--records", "tetragon", stdin=subprocess.PIPE)
    (folder / "off").touch()
    collector.process.wait(30)
    status, said = collector.end(None)
    assert status == 0 and "The kill file is there" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone has rights to give up")
def test_who_reads_records_has_no_rights_and_no_helper(portal: Portal, folder: Path) -> None:
    collector = Collector(write_config(folder, portal), "--records", "tetragon", stdin=subprocess.PIPE)
    pid = collector.process.pid
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    until(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text() == "")
    assert set(status["Uid"].split()) == {"65534"} and int(status["CapEff"], 16) == 0
    collector.end()
