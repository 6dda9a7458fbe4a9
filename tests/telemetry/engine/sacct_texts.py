"""Made-up sacct text for the engine's tests: rows by column name, and files of any length."""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

COLUMNS = str.split(
    "JobID JobIDRaw User JobName Account Partition QOS Eligible Start End Elapsed Timelimit Comment Submit "
    "NNodes NCPUS ReqCPUS ReqMem AllocTRES NodeList UID WorkDir State SubmitLine ExitCode"
)
NOW_S = 1_790_000_000
_FIRST = datetime(2026, 6, 1)  # of `many_rows`; UTC, as sacct prints it with TZ=UTC

GOOD = {
    "JobID": "101",
    "JobIDRaw": "101",
    "User": "ada",
    "JobName": "train",
    "Account": "chem",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "Submit": "2026-07-01T10:00:00",
    "Eligible": "2026-07-01T10:00:00",
    "Start": "2026-07-01T10:05:00",
    "End": "2026-07-01T11:05:00",
    "Elapsed": "01:00:00",
    "Timelimit": "1-00:00:00",
    "Comment": "",
    "NNodes": "1",
    "NCPUS": "8",
    "ReqCPUS": "8",
    "ReqMem": "16G",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1",
    "NodeList": "gpu-1",
    "WorkDir": "/home/ada",
    "UID": "1001",
    "SubmitLine": "sbatch run.sh",
    "ExitCode": "0:0",
}


def row(columns: Sequence[str] = COLUMNS, **values: str) -> str:
    """Write one row; what is not named is a good job's."""
    return "|".join({**GOOD, **values}[name] for name in columns)


def text(*rows: str, columns: Sequence[str] = COLUMNS) -> bytes:
    """Write a file of a header and rows."""
    return "".join(f"{line}\n" for line in ("|".join(columns), *rows)).encode()


MINUTES = 40_000  # that the jobs of a file are submitted in


def many_rows(
    count: int, *, seed: int = 1, columns: Sequence[str] = COLUMNS, users: int = 60, partitions: Sequence[str] = (),
) -> Iterator[bytes]:  # fmt: skip
    """Write a file of `count` jobs of varied users, sizes, states and times, line by line.

    As in life, they come in the order of their submit, and their elapsed time is their span but for a few that were
    suspended. A few users submit most.
    """
    minutes = (MINUTES * number // count for number in range(count))
    return _rows(minutes, seed=seed, first=0, columns=columns, users=users, partitions=partitions)


def five_minutes_rows(
    count: int, *, first: int, minute: int, seed: int = 2, users: int = 60, partitions: Sequence[str] = ()
) -> Iterator[bytes]:
    """Write what comes to a file of `many_rows` in five minutes from one of its `MINUTES` on, ids from `first` on."""
    minutes = (minute + 5 * number // count for number in range(count))
    return _rows(minutes, seed=seed, first=first, columns=COLUMNS, users=users, partitions=partitions)


def _rows(
    minutes: Iterator[int], *, seed: int, first: int, columns: Sequence[str], users: int, partitions: Sequence[str]
) -> Iterator[bytes]:
    rng = random.Random(seed)
    people = random.Random(f"{seed}:people")
    yield ("|".join(columns) + "\n").encode()
    for number, minute in enumerate(minutes, first):
        job = _job(rng, number, minute=minute)
        if partitions:
            name = f"u{int(users * people.random() ** 3):04}"
            job |= {"User": name, "WorkDir": f"/n/home/{name}/project", "Partition": people.choice(partitions)}
        yield (row(columns, **job) + "\n").encode()


def _job(rng: random.Random, number: int, *, minute: int) -> dict[str, str]:
    user, cpus, gpus = f"u{rng.randrange(60):02}", rng.choice((1, 4, 8, 16, 64)), rng.choice((0, 0, 0, 1, 4))
    length_s = int(rng.paretovariate(0.7) * 20) % 200_000
    start_s = minute * 60 + rng.randrange(7200)
    days, rest = divmod(length_s // 2 if rng.random() < 0.02 else length_s, 86_400)
    gres = f",gres/gpu:a100={gpus},gres/gpu={gpus}" if gpus else ""
    return {
        "JobID": str(1000 + number),
        "JobIDRaw": str(1000 + number),
        "User": user,
        "JobName": f"job-{rng.randrange(10**6)}",
        "State": rng.choice(("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001")),
        "Submit": _iso(minute * 60),
        "Eligible": _iso(minute * 60),
        "Start": _iso(start_s),
        "End": _iso(start_s + length_s),
        "Elapsed": f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}",
        "NCPUS": str(cpus),
        "ReqCPUS": str(cpus),
        "AllocTRES": f"billing={cpus},cpu={cpus}{gres},mem={cpus * 4}G,node=1",
        "NodeList": f"cpn-{rng.randrange(400)}",
        "WorkDir": f"/n/home/{user}/project",
        "SubmitLine": f"sbatch -p gpu -c {cpus} --wrap python train.py --seed {number}",
    }


def _iso(second: int) -> str:
    return (_FIRST + timedelta(seconds=second)).isoformat()
