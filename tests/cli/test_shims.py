"""`gatehouse squeue` and `sacct` where there is no Slurm: what they print, and when they become the real command."""

import json
import os
import pwd
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from telemetry.engine.slurm.printing import FIELDS, KEYS
from tests.support.capabilities import ROOT

ME = pwd.getpwuid(os.geteuid()).pw_name
ROW = {"jobid": "7", "jobarrayid": "7", "arrayjobid": "7", "state": "PENDING", "statecompact": "PD", "username": ME,
       "timeused": "0:00", "partition": "p", "reasonlist": "(Priority)"}  # fmt: skip
TOLD = {"fields": list(KEYS), "rows": [[ROW.get(key, "") for key in KEYS]], "logins": [ME], "open": ["p"], "ended": [9],
        "age_s": 3.2}  # fmt: skip


class Portal(BaseHTTPRequestHandler):
    """Answers what `told` and `shared` say, and notes what was asked."""

    told: tuple[int, object] = (200, TOLD)
    shared: tuple[int, object] = (409, {"code": "not_shared", "detail": "Not for you."})
    asked: list[object]
    first: list[tuple[int, object]]  # said before `told`, one a question

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self._answer(self.first.pop(0) if self.first else self.told)

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(self.shared)

    def _answer(self, answer: tuple[int, object]) -> None:
        body = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def portal() -> Iterator[type[Portal]]:
    class Mine(Portal):
        asked: list[object] = []
        first: list[tuple[int, object]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Mine.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield Mine
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PATH with our scripts first, `gatehouse`, and commands of Slurm behind them."""
    real, ours = tmp_path / "real", tmp_path / "bin"
    for place in (real, ours):
        place.mkdir()
    for name in ("squeue", "sacct"):
        (real / name).write_text(f'#!/bin/sh\nprintf "real {name}:%s\\n" "$@"\nexit 5\n')
        (real / name).chmod(0o755)
    (ours / "gatehouse").write_text(f'#!/bin/sh\nexec {sys.executable} -m portal.cli.main "$@"\n')
    (ours / "gatehouse").chmod(0o755)
    return tmp_path


def run(folder: Path, url: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{ROOT}/deploy/agent-path:{folder}/bin:{folder}/real:/usr/bin:/bin"
    given = {"PATH": path, "PYTHONPATH": str(ROOT), "GATEHOUSE_URL": url, "GATEHOUSE_TOKEN": "gha_x", "TZ": "UTC"}
    return subprocess.run(command, env=given | environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_script_in_path_prints_what_the_portal_knows(portal, folder: Path) -> None:
    ran = run(folder, portal.url, "squeue", "--me", "-h", "-o", "%i %T %R", GATEHOUSE_CLUSTER="aster")
    assert (ran.stdout, ran.returncode) == ("7 PENDING (Priority)\n", 0)
    assert ran.stderr == "gatehouse: as of 3 s ago.\n"
    assert portal.asked == ["/api/v1/slurm/squeue?cluster=aster&jobs="]
    gone = run(folder, portal.url, "squeue", "-j9", GATEHOUSE_QUIET="1")
    assert (gone.stdout, gone.stderr, gone.returncode) == ("", "slurm_load_jobs error: Invalid job id specified\n", 1)


def test_a_loop_beyond_its_budget_is_told_why_and_answered_later(portal, folder: Path) -> None:
    refusal = {"detail": "120 questions are used.", "remedy": "Use gatehouse wait.", "retry_after_s": 1}
    portal.first = [(429, refusal)]
    ran = run(folder, portal.url, "squeue", "--me", "-h", "-o", "%i")
    assert (ran.stdout, ran.returncode) == ("7\n", 0)
    assert ran.stderr == "gatehouse: 120 questions are used. Use gatehouse wait.\ngatehouse: as of 3 s ago.\n"
    assert len(portal.asked) == 2


@pytest.mark.parametrize(("age_s", "questions"), [(2.0, 2), (0.0, 1)])
def test_a_job_that_is_new_is_looked_for_once_more(portal, folder: Path, age_s: float, questions: int) -> None:
    """Where the queue was read before we asked; what was read since, knows the job or never will."""
    portal.first = [(200, TOLD | {"rows": [], "ended": [], "age_s": age_s, "retry_after_s": 2})]
    ran = run(folder, portal.url, "squeue", "-h", "-j", "7", "-o", "%T")
    assert ran.stdout.startswith("PENDING\n" if questions == 2 else "real squeue:-h\n")
    assert [isinstance(each, str) for each in portal.asked].count(True) == questions


def test_nobody_waits_for_a_job_that_never_shows(portal, folder: Path) -> None:
    portal.told = 200, TOLD | {"rows": [], "age_s": 20, "retry_after_s": 5}
    ran = run(folder, portal.url, "squeue", "-j7", GATEHOUSE_NEW_S="0.1")
    assert ran.stdout == "real squeue:-j7\n"


def test_what_is_not_printed_is_shared(portal, folder: Path) -> None:
    portal.shared = 200, {"out": "YWJjCg==", "complaint": "careful\n", "status": 3, "age_s": 1.0}
    ran = run(folder, portal.url, "sacct", "-j", "7")
    assert (ran.stdout, ran.returncode) == ("abc\n", 3) and ran.stderr.endswith("careful\n")
    assert portal.asked == [
        {
            "program": "sacct",
            "arguments": ["-j", "7"],
            "login": ME,
            "cluster": "",
            "reason": "steps",
            "zone": "UTC",
        }
    ]


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        ((200, TOLD), ["--me", "--json"]),
        ((200, TOLD), []),
        ((200, TOLD | {"age_s": 31}), ["--me"]),
        ((200, TOLD | {"fields": ["jobid"]}), ["--me"]),
        ((409, {"code": "queue_unknown"}), ["--me"]),
        ((401, {"code": "token_unknown"}), ["--me"]),
    ],
)
def test_what_is_refused_too_is_the_real_commands(portal, folder: Path, told, arguments: list[str]) -> None:
    portal.told = told
    ran = run(folder, portal.url, "squeue", *arguments)
    assert ran.stdout == "".join(f"real squeue:{word}\n" for word in arguments or [""])
    assert ran.returncode == 5 and "Asking Slurm." in ran.stderr


def test_without_a_portal_everything_is_the_real_commands(folder: Path) -> None:
    ran = run(folder, "http://127.0.0.1:1", "squeue", "--me", "-o", "%j 'x'")
    assert (ran.stdout, ran.returncode) == ("real squeue:--me\nreal squeue:-o\nreal squeue:%j 'x'\n", 5)


def test_it_never_calls_itself(folder: Path) -> None:
    for name in ("squeue", "sacct"):
        (folder / "real" / name).unlink()
    ran = run(
        folder, "http://127.0.0.1:1", "gatehouse", "squeue", "--me", PATH=f"{ROOT}/deploy/agent-path:{folder}/bin"
    )
    assert (ran.stdout, ran.returncode) == ("", 127) and "no other squeue in PATH" in ran.stderr
    again = run(folder, "http://127.0.0.1:1", "squeue", GATEHOUSE_PASSED_ON="squeue")
    assert again.returncode == 127


def test_it_loads_little() -> None:
    said = "import sys, portal.cli.main, portal.cli.shims.run; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"django", "celery", "polars", "pydantic", "ssl", "urllib.request"} & set(ran.stdout.split())


def test_the_documented_fields_are_those_that_are_printed() -> None:
    text = (ROOT / "docs/harnesses.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (?:`%(\w)`)? ?\| (\S+) \|$", text, re.MULTILINE)
    assert rows == [(each.key, each.letter, each.header) for each in FIELDS]
