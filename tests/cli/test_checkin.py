"""`gatehouse checkin` against a portal: in, kept open while a process goes on, out; no hook waits long."""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.cli import checkin, keeping
from portal.cli.main import build_parser, main
from principals.models import Agent, SessionCheckIn
from telemetry.engine.receipts import receipts_in
from tests import factories

ROOT = Path(__file__).resolve().parents[2]
IN = ["checkin", "--harness", "claude-code", "--host", "login01"]
LONG_S = 120.0  # on a machine that is busy with much else

database = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]


@pytest.fixture
def portal(live_server, cast, monkeypatch):
    """A portal that is asked with the token of the lab's agent, outside of any job."""
    monkeypatch.setenv("GATEHOUSE_URL", live_server.url)
    monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return live_server


@pytest.fixture
def harness():
    """A process that stands for a harness, until the test ends it."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def _command(*words, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "portal.cli.main", *IN, *words], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **more,
    )  # fmt: skip


def _until(is_so):
    ends = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.05)


class TestOnce:
    pytestmark = database

    def test_it_prints_id_and_receipt_for_a_comment(self, portal, capsys):
        assert main([*IN, "--model", "opus", "--label", "membrane", "--pid", "4711"]) == 0
        said = capsys.readouterr()
        row = SessionCheckIn.objects.get()
        assert (row.host, row.pid, row.model, row.directory) == ("login01", 4711, "opus", "membrane")
        first, receipt = said.out.split()
        assert first == row.public_id and receipts_in(said.out) == receipts_in(receipt) != []
        assert main(["checkin", "--end", said.out]) == 0
        row.refresh_from_db()
        assert row.how_ended == "said"

    def test_the_same_process_is_the_same_session_and_is_found_at_its_end(self, portal, capsys):
        for _ in range(2):
            assert main([*IN, "--json", "--pid", "4711"]) == 0
            said = json.loads(capsys.readouterr().out)
        row = SessionCheckIn.objects.get()
        assert said["id"] == row.public_id and said["receipt"].startswith("rcp_")
        assert main(["checkin", "--end", "--host", "login01", "--pid", "4712"]) == 0
        assert capsys.readouterr().err == "No session of this process is open.\n"
        assert main(["checkin", "--end", "--host", "login01", "--pid", "4711"]) == 0
        row.refresh_from_db()
        assert row.ended is not None

    def test_a_warning_is_told_and_lets_it_in(self, portal, capsys, settings):
        settings.SESSIONS_PER_NODE = 1
        assert main([*IN, "--pid", "1"]) == 0 and main([*IN, "--pid", "2"]) == 0
        said = capsys.readouterr()
        assert "above the limit" in said.err and "End another session" in said.err
        assert len(said.out.splitlines()) == SessionCheckIn.objects.count() == 2

    def test_a_refusal_is_the_portal_s_sentence_and_remedy(self, portal, cast, capsys):
        Agent.objects.filter(pk=cast.agent.pk).update(hosts=["login02"])
        assert main([*IN, "--pid", "1"]) == 1
        said = capsys.readouterr()
        assert said.out == "" and said.err.splitlines() == [
            "okafor-docking may not work on login01. [host_not_allowed]",
            "Use login02, or register an agent that may.",
        ]  # fmt: skip
        assert main(["checkin", "--end", "s_" + "0" * 20]) == 1
        assert "No such session of this agent." in capsys.readouterr().err

    @pytest.mark.parametrize("words", [IN, ["checkin", "--end"]], ids=["in", "out"])
    def test_a_token_that_is_none_is_refused(self, portal, monkeypatch, capsys, words):
        monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_nonsense")
        assert main(words) == 1
        assert "[token_malformed]" in capsys.readouterr().err

    def test_without_a_receipt_it_is_checked_in_all_the_same(self, portal, cast, monkeypatch, capsys):
        monkeypatch.setenv("GATEHOUSE_TOKEN", factories.make_token(cast.agent, "sessions:write"))
        assert main([*IN, "--pid", "1"]) == 0
        said = capsys.readouterr()
        assert said.out == f"{SessionCheckIn.objects.get().public_id}\n"
        assert said.err.startswith("No receipt: This token has no scope jobs:declare.")


class TestWhile:
    pytestmark = database

    def test_it_beats_checks_in_anew_and_checks_out_with_the_process(self, portal, harness, settings):
        settings.SESSION_SILENT_S = 1  # three beats a second
        with _command("--while", str(harness.pid)) as command:
            first = SessionCheckIn.objects.get(public_id=command.stdout.readline().split()[0])
            _until(lambda: SessionCheckIn.objects.get(pk=first.pk).last_beat > first.last_beat)
            SessionCheckIn.objects.filter(pk=first.pk).update(ended=first.started, how_ended="silent")
            _until(lambda: SessionCheckIn.objects.filter(ended=None).exists())
            second = SessionCheckIn.objects.get(ended=None)
            harness.kill()
            harness.wait()
            assert command.wait(LONG_S) == 0
        second.refresh_from_db()
        assert (second.pid, second.how_ended) == (harness.pid, "said")

    def test_one_that_is_told_to_end_checks_out(self, portal, harness):
        with _command("--while", str(harness.pid)) as command:
            assert command.stdout.readline().startswith("s_")
            command.terminate()
            assert command.wait(LONG_S) == 0
        assert SessionCheckIn.objects.get().how_ended == "said"

    def test_a_hook_returns_and_the_harness_is_kept_checked_in(self, portal):
        """As Claude Code runs one: by `sh -c`, reading all that it prints."""
        hook = [sys.executable, "-m", "portal.cli.main", *IN, "--while", "parent", "--detach"]
        script = (
            "import subprocess, sys; "
            "print(subprocess.run(['sh', '-c', sys.argv[1] + ' || exit 1'], capture_output=True, text=True).stdout, "
            "flush=True); sys.stdin.read()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script, shlex.join(hook)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        ) as process:  # fmt: skip
            said = process.stdout.readline()
            row = SessionCheckIn.objects.get()
            assert said.startswith(row.public_id) and row.pid == process.pid and row.ended is None
            process.stdin.close()
        _until(lambda: SessionCheckIn.objects.get().how_ended == "said")

    def test_a_portal_that_was_away_is_asked_again(self, portal, harness, monkeypatch, capsys):
        post, sent = checkin.client.post, []

        def away_once(url, path, **more):
            sent.append((path, more["headers"].get("Idempotency-Key")))
            if len(sent) == 1:
                raise checkin.client.PortalUnreachable("It does not answer.")
            answer = post(url, path, **more)
            harness.kill()
            harness.wait()
            return answer

        monkeypatch.setattr(checkin.client, "post", away_once)
        monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.01)
        monkeypatch.setattr(keeping.signal, "signal", lambda *_: None)
        assert main([*IN, "--while", str(harness.pid)]) == 0
        assert capsys.readouterr().err == "It does not answer.\n"
        assert [path for path, _ in sent][:2] == ["/sessions", "/sessions"] and sent[0][1] == sent[1][1]
        assert SessionCheckIn.objects.get().how_ended == "said"


@pytest.fixture
def silent(monkeypatch):
    """A portal that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("GATEHOUSE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_x")
        yield


@pytest.mark.parametrize("words", [IN, ["checkin", "--end"], [*IN, "--end", "s_" + "0" * 20]], ids=["in", "out", "id"])
def test_nobody_waits_long_for_a_portal_that_does_not_answer(silent, monkeypatch, capsys, words):
    monkeypatch.setattr(checkin, "PATIENCE_S", 0.2)
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and "does not answer" in said.err and said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["checkin"], "--harness is missing"),
        ([*IN, "--detach"], "--detach needs --while"),
        ([*IN, "--while", "4194304"], "No process 4194304 runs here"),
        (["checkin", "--end", "../me"], "no id of a session"),
    ],
    ids=["no-harness", "no-while", "no-process", "no-id"],
)  # fmt: skip
def test_what_makes_no_sense_is_told_without_a_request(monkeypatch, capsys, words, told):
    monkeypatch.setenv("GATEHOUSE_TOKEN", "gha_x")
    monkeypatch.setenv("GATEHOUSE_URL", "http://127.0.0.1:1")
    assert main(words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("pid", ["0", "-1", "x", "4194305", "٣"], ids=["zero", "minus", "word", "beyond", "arabic"])
def test_what_is_no_process_is_told(capsys, pid):
    with pytest.raises(SystemExit):
        main([*IN, f"--pid={pid}"])
    assert "is no process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        ("sh -c x", True), ("/bin/bash hook.sh", True), ("bash -lc x", True), ("bash", False), ("-bash", False),
        ("bash --norc -i", False), ("node cli.js", False), ("", False),
    ],
)  # fmt: skip
def test_shells_that_run_something_and_end_are_no_harness(words, passes):
    assert checkin._is_passing_shell(words.split()) is passes


def test_a_process_that_ended_is_none_though_nobody_asked_how():
    child = subprocess.Popen(["true"])
    _until(lambda: keeping.start_of(child.pid) is None)
    assert child.wait() == 0 and keeping.start_of(os.getpid()) is not None


@pytest.mark.parametrize("node", ["", "n001"], ids=["salloc", "step"])
def test_a_job_is_told_where_slurm_started_it(monkeypatch, node):
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    monkeypatch.setenv("SLURMD_NODENAME", node)
    said = checkin._beginning(build_parser().parse_args(IN), 1)
    assert said.get("job_id") == (42 if node else None)
