"""A login node in small: two hours of an agent's and a person's work, run again with real processes.

`make demo-collector` runs it: a portal of its own, a collector beside it, the trace at sixty times its speed, and then
what the portal says of it beside what was done. Root's rights let the kernel tell of every process; without them the
collector walks `/proc` and misses short ones, as the published measurement did.
"""

import json
import os
import pty
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

HOURS: Final = 2
SPEED: Final = 60
CLUSTER: Final = "aster"
_SEED: Final = 7
_STUBS: Final = ("sbatch", "squeue", "sacct")  # no jobs are submitted by a demonstration
_FILE: Final = "/etc/hostname"
_AGENT_LOOKS: Final[Sequence[tuple[int, Sequence[str]]]] = (
    (46, ("head", "-n", "50", _FILE)), (21, ("sed", "-n", "1,20p", _FILE)), (14, ("tail", "-n", "5", _FILE)),
    (7, ("cat", _FILE)), (9, ("grep", "-r", "x", _FILE)), (3, ("find", "/etc/apt", "-name", "x")), (2, ("wc", _FILE)),
    (4, ("git", "--version")),
)  # fmt: skip
_READY_S: Final = 180.0
_TOLERANCE: Final = 0.03  # of all commands; what they were is not known of those whose words were gone

AGENT_SCRIPT: Final = """\
#!{python}
import json, subprocess, sys, time
began = time.monotonic()
for line in open(sys.argv[1]):
    due, argv = json.loads(line)
    time.sleep(max(0, due - (time.monotonic() - began)))
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""


class Act(NamedTuple):
    """A command of the trace, in seconds from its beginning."""

    at_s: float
    argv: Sequence[str]


def agent_trace(seed: int = _SEED) -> list[Act]:
    """Make two hours of an agent: a submission, three queries, a look, an edit, and again, among many looks."""
    lots, acts, at = random.Random(seed), list[Act](), 0.0
    weights, looks = zip(*_AGENT_LOOKS, strict=True)
    while at < HOURS * 3600 - 900:
        experiment: list[Sequence[str]] = [("sbatch", "run.sh"), *[("squeue", "--me")] * 3]
        experiment += lots.choices(looks, weights, k=50)
        experiment += [("sed", "-i", "s/zzzzzz/y/", f"{{folder}}/notes-{len(acts)}")]
        for argv in experiment:
            acts.append(Act(at, argv))
            at += lots.expovariate(1 / 17)  # 3.53 commands a minute
    return acts


def person_trace(seed: int = _SEED) -> list[Act]:
    """Make two hours of a person: a submission now and then, and queries."""
    lots, at, acts = random.Random(seed), 60.0, list[Act]()
    for argv in (("sbatch", "run.sh"), ("squeue",), ("squeue",), ("tail", "-n", "5", _FILE), ("squeue",)) * 4:
        acts.append(Act(at, argv))
        at += 120 + lots.expovariate(1 / 220)
    return [act for act in acts if act.at_s < HOURS * 3600]


@dataclass(frozen=True)
class Node:
    """A folder with what the trace runs, and the speed at which it does."""

    folder: Path
    speed: float

    @property
    def path(self) -> str:
        return f"{self.folder / 'bin'}:{os.environ.get('PATH', os.defpath)}"

    def prepare(self) -> None:
        """Write the harness by its name, and programs by the names of Slurm's that do nothing."""
        (self.folder / "bin").mkdir()
        for name in _STUBS:
            _write_program(self.folder / "bin" / name, "#!/bin/sh\nexit 0\n")
        _write_program(self.folder / "claude", AGENT_SCRIPT.format(python=sys.executable))

    def run_agent(self, acts: Sequence[Act]) -> int:
        """Run a trace under a harness; return the number of its process."""
        plan = self.folder / "plan"
        lines = [
            json.dumps((act.at_s / self.speed, [word.format(folder=self.folder) for word in act.argv])) for act in acts
        ]
        plan.write_text("\n".join(lines))
        process = subprocess.Popen([self.folder / "claude", plan], env=os.environ | {"PATH": self.path})
        process.wait()
        return process.pid

    def run_person(self, acts: Sequence[Act]) -> int:
        """Type a trace into a shell at a terminal; return the number of the shell."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve("/bin/bash", ["-bash", "--norc", "--noprofile"], {"PATH": self.path})  # noqa: S606
        reading = threading.Thread(target=_forget, args=(terminal,), daemon=True)
        reading.start()
        began = time.monotonic()
        for act in acts:
            time.sleep(max(0.0, act.at_s / self.speed - (time.monotonic() - began)))
            os.write(terminal, f"{' '.join(act.argv)}\n".encode())
        os.write(terminal, b"exit\n")
        os.waitpid(pid, 0)
        return pid


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _forget(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 4096):
            pass


def main() -> int:
    """Run the trace and print what was done beside what the portal says; return 1 where they differ too much."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=float, default=SPEED, help=f"how many times as fast (default {SPEED})")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gatehouse-node-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        node = Node(folder, options.speed)
        node.prepare()
        os.environ |= {"GATEHOUSE_DATA": str(folder / "data"), "GATEHOUSE_PROFILE": "embedded", "DEMO": "0"}
        with _portal() as address, _collector(folder, address):
            pids = _replay(node)
        return _compare(pids)


def _replay(node: Node) -> dict[str, int]:
    _say(f"Running {HOURS} hours of work in {HOURS * 60 / node.speed:.0f} minutes …")
    pids: dict[str, int] = {}
    person = threading.Thread(target=lambda: pids.update(human=node.run_person(person_trace())))
    person.start()
    pids["agent"] = node.run_agent(agent_trace())
    person.join()
    return pids


@contextmanager
def _portal() -> Iterator[str]:
    """Run a portal on a free port of this machine; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    Path(os.environ["GATEHOUSE_DATA"]).mkdir()
    _say("Starting a portal …")
    command = [sys.executable, "manage.py", "run"]
    server = subprocess.Popen(command, env=os.environ | {"PORT": port}, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _READY_S
        while not _is_ready(f"http://127.0.0.1:{port}/readyz"):
            if server.poll() is not None or time.monotonic() > until:
                raise SystemExit("The portal did not start; `make run` shows why.")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def _is_ready(address: str) -> bool:
    with suppress(OSError):
        return bool(urlopen(address, timeout=5).status == 200)  # noqa: S310 - our own address
    return False


@contextmanager
def _collector(folder: Path, address: str) -> Iterator[None]:
    """Run a collector in a study, which ends and sends what it has with the block."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    token = _manage("issue_service_token", "collector", "--cluster", CLUSTER, "--scope", "ingest:activity")
    _manage(
        "baseline_study", "start", "demonstration", "--cluster", CLUSTER, "--purpose", "A demonstration on a node",
        "--approved-by", "Whoever runs it", "--from", today, "--until", today,
    )  # fmt: skip
    (folder / "token").write_text(f"{token}\n")
    (folder / "token").chmod(0o600)
    (folder / "spool").mkdir()
    (folder / "spool").chmod(0o777)
    settings = {
        "portal": address, "cluster": CLUSTER, "host": "login1", "token_file": str(folder / "token"), "user": "nobody",
        "spool": str(folder / "spool"), "kill_file": str(folder / "off"), "study": "demonstration",
    }  # fmt: skip
    config = folder / "collect.toml"
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "portal.cli.main", "collect", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        if process.stderr is not None:
            _say(process.stderr.readline().strip())  # once it has begun to look
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def _manage(*arguments: str) -> str:
    ran = subprocess.run([sys.executable, "manage.py", *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr.strip())
    return ran.stdout.strip()


def _compare(pids: dict[str, int]) -> int:
    """Print a line for each driver and measure: done, told by the portal, their ratio; and how much could be seen."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    import django

    django.setup()
    from django.db.models import Sum

    from telemetry import services
    from telemetry.models import ActivityDay, CollectorReport, ExperimentLoop

    services.refresh_activity()
    all_heard = True
    for driver, acts in (("agent", agent_trace()), ("human", person_trace())):
        mine = {"session__process__contains": f"/{pids[driver]}-"}
        told = Counter[str]()
        for day in ActivityDay.objects.filter(driver=driver, **mine):
            told.update(day.counts)
        told["loops"] = ExperimentLoop.objects.filter(**mine).count()
        for measure, done in _done(acts).items():
            line = {"driver": driver, "measure": measure, "done": done, "told": told[measure]}
            _show(line | {"ratio": round(told[measure] / done, 3)})
        all_heard &= abs(told["commands"] / len(acts) - 1) <= _TOLERANCE
    mode = CollectorReport.objects.latest("until").mode
    sums = CollectorReport.objects.aggregate(events=Sum("events"), lost=Sum("lost"), words_gone=Sum("argv_missed"))
    _show({"mode": mode, **sums})
    return 0 if all_heard or mode != CollectorReport.Mode.EVENTS else 1


def _show(line: Mapping[str, object]) -> None:
    print(json.dumps(line))  # noqa: T201


def _done(acts: Sequence[Act]) -> dict[str, int]:
    """Count a trace by itself: every submission but the first ends a loop, for something was done since the last."""
    programs = Counter(act.argv[0] for act in acts)
    return {
        "commands": len(acts), "submission": programs["sbatch"], "scheduler_query": programs["squeue"],
        "tool:tail": programs["tail"], "loops": programs["sbatch"] - 1,
    } | ({"tool:head": programs["head"], "tool:sed": programs["sed"]} if programs["head"] else {})  # fmt: skip


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
