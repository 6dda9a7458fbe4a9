"""What the collector costs a login node: `make bench-collector` prints JSON lines.

Some hundred processes that sleep, and commands of milliseconds at an even pace, beside a real collector in its two
processes. Its share of a core is what the kernel charged it over the measured time, its beginning left out. With
`--ssh-log RATE` it reads a log of sshd too, which grows by so many lines a second, as if so many people came.
"""

import argparse
import itertools
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TICKS_S = os.sysconf("SC_CLK_TCK")
WARM_UP_S = 2.0
# How much goes on, and what may be used of a core and of memory for it.
CASES: tuple[dict[str, Any], ...] = (
    {"processes": 500, "execs_per_s": 50, "goal_core_share": 0.02, "goal_peak_mb": 60},
    {"processes": 500, "execs_per_s": 2000, "goal_core_share": 0.25, "goal_peak_mb": 60, "goal_lost": 0},
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--ssh-log", type=int, default=0, metavar="RATE")
    parser.add_argument("--load", type=int, metavar="RATE", help=argparse.SUPPRESS)
    parser.add_argument("--program", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load is not None:
        return _load(options.load, options.seconds, options.program)
    for case in CASES:
        print(json.dumps({**_machine(), **case, **_run(case, options.seconds, options.ssh_log)}), flush=True)  # noqa: T201
    return 0


def _load(rate: int, seconds: float, program: str) -> int:
    """Start commands at an even pace, without waiting for any; print how many."""
    began_s, count = time.monotonic(), 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        if count >= passed_s * rate:
            time.sleep(0.0005)
        else:
            os.posix_spawn(program, ["true", str(count)], {})
            count += 1
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    print(count)  # noqa: T201
    return 0


def _write_program(folder: str) -> str:
    """Write a program that sleeps for 2 ms and costs next to nothing, or the machine is busy starting programs instead
    of being looked at. Elsewhere than on x86-64 it is `true`."""
    if platform.machine() != "x86_64":
        return shutil.which("true") or "/bin/true"
    base, head = 0x400000, 64 + 56
    # nanosleep(&{0 s, 2 ms}, NULL); exit(0)
    code = bytes.fromhex("b823000000 488d3d0d000000 31f6 0f05 b83c000000 31ff 0f05") + struct.pack("<qq", 0, 2_000_000)
    size = head + len(code)
    file = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, base + head, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    path = Path(folder) / "true"
    path.write_bytes(file + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096) + code)
    path.chmod(0o755)
    return str(path)


def _log(stack: ExitStack, folder: Path, rate: int) -> Path:
    """Let a log of sshd grow until the stack ends; return settings that name it."""
    log, settings, done = folder / "auth.log", folder / "collect.toml", threading.Event()
    settings.write_text(
        f'portal = "https://gatehouse.example.org"\ncluster = "bench"\nuser = "nobody"\nssh_log = "{log}"\n'
    )
    log.touch()

    def write() -> None:
        with log.open("a", buffering=1) as file:
            for number in itertools.count():
                if done.wait(1 / rate):
                    return
                who = f"u{number % 500} from 192.0.2.{number % 250} port {number % 60_000} ssh2: ED25519 SHA256:"
                file.write(
                    f"Nov 30 21:00:00 login1 sshd[{100_000 + number}]: Accepted publickey for {who}{number:043}\n"
                )

    writer = threading.Thread(target=write)
    writer.start()
    stack.callback(writer.join)
    stack.callback(done.set)
    return settings


def _run(case: dict[str, Any], seconds: float, logged_per_s: int) -> dict[str, Any]:
    with ExitStack() as stack:
        for _ in range(case["processes"]):
            sleeper = subprocess.Popen(["sleep", "3600"])
            stack.callback(sleeper.wait)
            stack.callback(sleeper.kill)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gatehouse-bench-"))
        settings = ["--config", str(_log(stack, Path(folder), logged_per_s))] if logged_per_s else []
        arguments = ["collect", *settings, "--dry-run", "--json", "--seconds", str(seconds + 2 * WARM_UP_S)]
        collector = subprocess.Popen(
            [sys.executable, "-m", "portal.cli.main", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert collector.stderr is not None and collector.stderr.readline()
        time.sleep(WARM_UP_S)
        pids = [
            collector.pid,
            *map(int, Path(f"/proc/{collector.pid}/task/{collector.pid}/children").read_text().split()),
        ]
        before = [_cpu_s(pid) for pid in pids]
        program = _write_program(folder)
        command = [
            sys.executable,
            "-m",
            "tests.bench.collector",
            "--load",
            str(case["execs_per_s"]),
            "--program",
            program,
        ]
        began_s = time.monotonic()
        load = subprocess.run(
            [*command, "--seconds", str(seconds)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        passed_s = time.monotonic() - began_s
        used = [_cpu_s(pid) - one for pid, one in zip(pids, before, strict=True)]
        peak_mb = sum(_peak_mb(pid) for pid in pids)
        said, _ = collector.communicate(timeout=60)
    bodies = [json.loads(line) for line in said.splitlines()]
    return {**_told(bodies), **{
        "ssh_log_lines_per_s": logged_per_s, "started": int(load.stdout),
        "started_per_s": round(int(load.stdout) / passed_s),
        "core_share": round(sum(used) / passed_s, 4), "core_share_of_helper": round(sum(used[1:]) / passed_s, 4),
        "peak_mb": round(peak_mb, 1),
    }}  # fmt: skip


def _told(bodies: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up what the collector says of itself."""
    health = [each["health"] for each in bodies]
    counted = sum(each["counts"].get("commands", 0) for body in bodies for each in body["minutes"])
    missed = sum(each["argv_missed"] for each in health)
    return {
        "mode": bodies[-1]["mode"], "counted": counted, "lost": sum(each["lost"] for each in health),
        "argv_missed_share": round(missed / max(1, counted), 4),
        "sampled_share": min(each["sampled_share"] for each in health),
    }  # fmt: skip


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def _machine() -> dict[str, Any]:
    return {
        "benchmark": "collector", "python": platform.python_version(), "interpreter": platform.python_compiler(),
        "cores": os.cpu_count(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
