"""The supervisor ends its children in time, whatever they do with the signal."""

import signal
import sys
import time
from collections.abc import Iterator

import pytest

from portal.supervisor import children
from portal.supervisor.children import Child, Supervisor

_READY = "print(flush=True)"
DEAF = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {_READY}; time.sleep(600)"
POLITE = f"import time; {_READY}; time.sleep(600)"


@pytest.fixture
def deaf() -> Iterator[list[Child]]:
    """Two children that ignore SIGTERM and a polite one between them."""
    made = [Child(name, [sys.executable, "-c", script]) for name, script in
            (("first", DEAF), ("polite", POLITE), ("last", DEAF))]  # fmt: skip
    yield made
    for child in made:
        child.kill_group()


@pytest.fixture
def running(deaf: list[Child], monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """A supervisor whose children have told that they heed their scripts."""
    popen = children.subprocess.Popen
    with monkeypatch.context() as patch:
        patch.setattr(children.subprocess, "Popen", lambda *args, **how: popen(*args, **how, stdout=-1))
        for child in deaf:
            child.start()
    for child in deaf:
        assert child.process and child.process.stdout
        with child.process.stdout as said:
            assert said.readline() == b"\n"
    return Supervisor(deaf, say=print)


def statuses(supervisor: Supervisor) -> list[int | None]:
    return [child.process.poll() for child in supervisor.children if child.process]


def test_all_are_asked_at_once_and_the_deaf_are_killed_when_patience_is_over(
    running: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "PATIENCE_S", 0.5)
    running.request_stop()
    running.stop()
    assert statuses(running) == [-signal.SIGKILL, -signal.SIGTERM, -signal.SIGKILL]


def test_patience_is_counted_from_the_first_signal(running: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "PATIENCE_S", 60.0)
    monkeypatch.setattr(children, "REAPED_WITHIN_S", 30.0)
    running.asked_at = time.monotonic() - 60.0  # it came while something else was going on
    running.request_stop()  # a second Ctrl-C gives nobody more time
    began = time.monotonic()
    running.stop()
    assert time.monotonic() - began < 30
    assert None not in statuses(running)


def test_patience_leaves_room_in_the_five_seconds_promised() -> None:
    assert children.PATIENCE_S + children.REAPED_WITHIN_S <= 3.5


@pytest.mark.parametrize("is_needed", [True, False])
def test_everything_stops_for_a_needed_child_that_fails_and_for_no_other(
    is_needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "RESTARTS", 0)
    said: list[str] = []
    failing = Child("failing", [sys.executable, "-c", "raise SystemExit(3)"], is_needed=is_needed)
    steady = Child("steady", [sys.executable, "-c", "import time; time.sleep(600)"])
    supervisor = Supervisor([failing, steady], say=lambda text: (said.append(text), supervisor.request_stop())[0])
    failing.start()
    steady.start()
    try:
        assert supervisor.watch() == (1 if is_needed else 0)
        assert ("stopping" if is_needed else "the rest goes on") in said[-1] and "status 3" in said[-1]
        assert steady.process and steady.process.poll() is None
    finally:
        supervisor.stop()


def test_a_command_that_is_ended_before_it_takes_over_the_signals_says_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = "import time; print('ready', flush=True); time.sleep(600)"
    child = Child("simulator", [sys.executable, "manage.py", "shell", "--no-imports", "-c", waiting])
    popen = children.subprocess.Popen
    with monkeypatch.context() as patch:
        patch.setattr(children.subprocess, "Popen", lambda *args, **how: popen(*args, **how, stdout=-1))
        child.start()
    assert child.process and child.process.stdout
    try:
        with child.process.stdout as said:
            assert said.readline() == b"ready\n"
        child.process.terminate()
        assert child.process.wait(60) == 128 + signal.SIGTERM
    finally:
        child.kill_group()
    assert capfd.readouterr().err == ""
