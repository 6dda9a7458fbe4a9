"""A collector runs in two processes, sends what it counted, and ends well however it ends."""

import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "ghs_0123456789abcdef"


class Portal:
    """What takes batches on a port of this machine."""

    def __init__(self) -> None:
        portal = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                portal.taken.append((dict(self.headers), body))
                answer = json.dumps({"accepted": {}, "rejected": []}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def write_config(folder: Path, taker: Portal, **more: str) -> Path:
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    settings = {
        "portal": f"http://127.0.0.1:{taker.server.server_port}", "cluster": "aster", "host": "login1",
        "token_file": str(token), "spool": str(folder / "spool"), "user": "nobody", "kill_file": str(folder / "off"),
        **more,
    }  # fmt: skip
    path = folder / "collect.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    return path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "portal.cli.main", "collect", *arguments]


@contextmanager
def collecting(config: Path) -> Iterator["subprocess.Popen[str]"]:
    """A collector that has begun to look."""
    process = subprocess.Popen(command("--config", str(config)), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None and "Collecting:" in process.stderr.readline()
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait(20)
        process.stderr.close()


def helper_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    return next((int(child) for child, line in lines.items() if b"collector.helper" in line), 0)


def until(test: Callable[[], bool], seconds: float = 30) -> None:
    end_s = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end_s, "It did not come to pass."
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return b"collector.helper" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def end(process: "subprocess.Popen[str]") -> tuple[int, str]:
    _, said = process.communicate(timeout=30)
    return process.returncode, said


def run_agent(folder: Path) -> None:
    """A harness that starts some commands, and lives long enough to be seen by looks at `/proc`."""
    claude = folder / "claude"
    claude.write_text(
        f"#!{sys.executable}\nimport subprocess\n"
        "for each in ('sleep 0.6', 'grep -r needle /etc/hostname', 'sleep 0.6'):\n    subprocess.run(each.split())\n"
    )
    claude.chmod(0o755)
    subprocess.run([claude], check=True)


def test_a_dry_run_prints_what_would_leave_and_needs_no_settings(folder: Path) -> None:
    process = subprocess.Popen(
        command("--dry-run", "--json", "--seconds", "5"),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None and "Collecting:" in process.stderr.readline()
    run_agent(folder)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    bodies = [json.loads(line) for line in said.splitlines()]
    assert {each["harness"] for body in bodies for each in body["sessions"]} == {"claude-code"}
    assert "needle" not in said and str(folder) not in said
    assert {body["cluster"] for body in bodies} <= {"unnamed"}


def test_it_sends_what_an_agent_did_signed_and_ends_when_told(portal: Portal, folder: Path) -> None:
    with collecting(write_config(folder, portal)) as process:
        run_agent(folder)
        helper = helper_of(process.pid)
        process.send_signal(signal.SIGTERM)
        status, said = end(process)
    assert (status, "Traceback" in said) == (0, False)
    until(lambda: not is_alive(helper))
    bodies = []
    for headers, body in portal.taken:
        told = json.loads(body)
        bodies.append(told)
        digest = hmac.new(TOKEN.encode(), body, hashlib.sha256).hexdigest()
        assert headers["X-Gatehouse-Signature"] == f"sha256={digest}"
        assert (headers["Authorization"], headers["Idempotency-Key"]) == (f"Bearer {TOKEN}", told["batch"])
    [session] = [each for body in bodies for each in body["sessions"] if each["end"]]
    assert (session["harness"], session["kind"]) == ("claude-code", "agent")
    commands = sum(
        each["counts"]["commands"] for body in bodies for each in body["minutes"] if each["session"] == session["id"]
    )
    assert commands == 3 if bodies[0]["mode"] == "events" else commands >= 2
    assert list((folder / "spool").glob("*.batch")) == []
    assert TOKEN not in said and TOKEN.encode() not in b"".join(body for _, body in portal.taken)


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


CAPABILITIES = ("CapEff", "CapPrm", "CapInh", "CapAmb")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="root alone can lend rights")
def test_what_a_service_was_lent_the_helper_alone_keeps() -> None:
    lent, nobody = "-all,+net_admin,+sys_ptrace", ["--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run(["setpriv", *nobody, "test", "-x", sys.executable], check=False).returncode:
        pytest.skip("This interpreter is root's alone.")
    process = subprocess.Popen(
        ["setpriv", *nobody, f"--inh-caps={lent}", f"--ambient-caps={lent}",
         f"--bounding-set={lent}", "--no-new-privs", *command("--dry-run", "--json", "--seconds", "1")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None and "Collecting:" in process.stderr.readline()
    own, helper = status_of(process.pid), status_of(helper_of(process.pid))
    said, _ = process.communicate(timeout=30)
    assert {int(own[name], 16) for name in CAPABILITIES} == {0}
    assert {int(helper[name], 16) for name in ("CapEff", "CapPrm")} == {1 << 12 | 1 << 19}
    assert (own["NoNewPrivs"], helper["NoNewPrivs"], helper["Uid"].split()[0]) == ("1", "1", "65534")
    assert process.returncode == 0 and said


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone has rights to give up")
def test_who_counts_has_no_rights_and_who_looks_writes_nothing(portal: Portal, folder: Path) -> None:
    with collecting(write_config(folder, portal)) as process:
        status = status_of(process.pid)
        files = {str(each.readlink()) for each in Path(f"/proc/{helper_of(process.pid)}/fd").iterdir()}
    assert set(status["Uid"].split()) == {"65534"} and status["Groups"] == ""
    assert {int(status[name], 16) for name in CAPABILITIES} == {0}
    assert status["NoNewPrivs"] == "1"
    assert {each.partition(":")[0] for each in files if not each.startswith("/dev/")} <= {"pipe", "socket"}


def test_each_half_ends_with_the_other(portal: Portal, folder: Path) -> None:
    config = write_config(folder, portal)
    with collecting(config) as process:
        os.kill(helper_of(process.pid), signal.SIGKILL)
        status, said = end(process)
    assert status == 1 and "The helper ended." in said
    assert portal.taken  # what was counted until then
    with collecting(config) as process:
        helper = helper_of(process.pid)
        process.kill()
        process.wait(20)
        until(lambda: not is_alive(helper))


def test_a_kill_file_ends_it_and_lets_none_begin(portal: Portal, folder: Path) -> None:
    config = write_config(folder, portal)
    with collecting(config) as process:
        (folder / "off").touch()
        status, said = end(process)
    assert status == 0 and "The kill file is there" in said
    ran = subprocess.run(
        command("--config", str(config)), cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert ran.returncode == 0 and "nothing is collected" in ran.stderr


def test_what_was_not_sent_is_sent_by_the_next_run(portal: Portal, folder: Path) -> None:
    config = write_config(folder, portal, portal="http://127.0.0.1:9")
    with collecting(config) as process:
        process.send_signal(signal.SIGTERM)
        status, said = end(process)
    assert status == 0 and "Batches wait" in said
    waiting = list((folder / "spool").glob("*.batch"))
    assert waiting and all(TOKEN.encode() not in each.read_bytes() for each in waiting)
    with collecting(write_config(folder, portal)):
        until(lambda: not any(each.exists() for each in waiting))
    assert len(portal.taken) >= len(waiting)


@pytest.mark.parametrize(
    ("more", "code"),
    [({"token_file": "/nonexistent"}, "no_token"), ({"user": "no-such-account"}, "no_account"),
     ({"spool": "/proc/none"}, "spool_unusable"), ({"cluster": ""}, "cluster_name")],
)  # fmt: skip
def test_what_cannot_be_is_told_with_a_remedy(portal: Portal, folder: Path, more: dict[str, str], code: str) -> None:
    if code == "no_account" and os.geteuid() != 0:
        pytest.skip("Root alone becomes somebody.")
    ran = subprocess.run(
        command("--config", str(write_config(folder, portal, **more))), cwd=ROOT, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert ran.returncode == 2 and f"[{code}]" in ran.stderr and "Traceback" not in ran.stderr
