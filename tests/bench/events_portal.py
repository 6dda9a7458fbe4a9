"""The portal's side of `make bench-events`: who subscribes, and the jobs that change, each in a process of its own."""

import argparse
import json
import sys
import time
from collections import deque
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

TICK_S = 0.2  # so often are records handed over
PEOPLE, AGENTS = 10, 10  # of a lab: those who hear `lab-jobs`, and agents of the owner of its jobs
BIG = 250  # people, and as many agents, of the one big lab
WATCHERS, SOCKETS_EACH = 5, 10  # staff who hear all jobs of the cluster and stop reading
REVOKED = 10
CLUSTER = "bench"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("act", choices=["prepare", "write"])
    parser.add_argument("--labs", type=int, default=250)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--big", action="store_true", help="jobs of the big lab too")
    parser.add_argument("--revoke", default="", help="keys of tokens to revoke half-way, their rows alone")
    parser.add_argument("--first", type=int, default=1, help="the first job's id")
    options = parser.parse_args()

    import django

    django.setup()
    return _prepare(options) if options.act == "prepare" else _write(options)


# --- who subscribes ------------------------------------------------------------------------------------------
def _prepare(options: argparse.Namespace) -> int:
    """Make labs, people with sessions and agents with tokens; write one line of JSON a subscriber."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from principals.models import Cluster, User

    cluster = Cluster.objects.create(name=CLUSTER)
    with options.file.open("w") as file:
        for number in range(options.labs):
            make_lab(cluster, f"l{number:04}", PEOPLE, AGENTS, file)
        make_lab(cluster, "big", BIG, BIG, file)
        make_lab(cluster, "revoked", 1, REVOKED, file)
        watchers = [_person(f"watcher{number}", is_research_computing=True) for number in range(WATCHERS)]
        User.objects.bulk_create(watchers)
        for person in watchers:
            session = _session(person)
            for _ in range(SOCKETS_EACH):
                _tell(file, "watchers", cookie=session, topics=f"all-jobs:{CLUSTER}")
    return 0


def _person(name: str, **fields: Any) -> Any:
    from principals.models import User

    return User(username=name, password="!", **fields)


def make_lab(cluster: Any, name: str, people: int, agents: int, file: Any) -> None:
    """Make a lab of people with sessions and agents with tokens; write who they are, a line of JSON each."""
    from portal.core import clock
    from principals.engine import tokens
    from principals.models import Agent, AgentToken, ClusterUser, Lab, LabMembership, SlurmAccount, User
    from principals.services.tokens.issuing import peppers

    lab = Lab.objects.create(name=name, title=name)
    SlurmAccount.objects.create(cluster=cluster, name=f"{name}_acct", lab=lab)
    members = User.objects.bulk_create(_person(f"{name}u{number:03}") for number in range(people))
    ClusterUser.objects.bulk_create(ClusterUser(cluster=cluster, login=each.username, user=each) for each in members)
    LabMembership.objects.bulk_create(
        LabMembership(lab=lab, user=each, role="manager" if number else "pi") for number, each in enumerate(members)
    )
    until = clock.now() + timedelta(days=30)
    made = Agent.objects.bulk_create(
        Agent(
            lab=lab, owner=members[0], name=f"{name}-agent-{number}", harness="codex", purpose="Waits for its jobs.",
            status=Agent.Status.ACTIVE, expires=until, requested_by=members[0],
        )
        for number in range(agents)
    )  # fmt: skip
    rows = []
    for agent in made:
        parts = tokens.make_token(tokens.TokenKind.AGENT)
        stored = tokens.digest_token(parts, peppers())
        rows.append(
            AgentToken(
                agent=agent, key=parts.key, digest=stored.digest, pepper=stored.pepper_id,
                scopes=["me:read", "jobs:read", "events:read"], expires=until, created_by=members[0],
            )
        )  # fmt: skip
        _tell(file, name, token=parts.plain)
    AgentToken.objects.bulk_create(rows)
    for number, person in enumerate(members):
        # Of whoever owns hundreds of agents, they alone would fill what is heard without asking.
        asked = f"lab-jobs:{lab.pk}" if number == 0 else ""
        _tell(file, name, cookie=_session(person), topics=asked)


def _session(person: Any) -> str:
    """Sign a person in, as their browser would be."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def _tell(file: Any, lab: str, **who: str) -> None:
    file.write(json.dumps({"lab": lab} | who) + "\n")


# --- jobs that change ----------------------------------------------------------------------------------------
def _write(options: argparse.Namespace) -> int:
    """Write records at a rate, through the stream of the Slurm reader; note of each when it was due and committed."""
    from principals.actors import SYSTEM_ACTOR
    from principals.models import AgentToken, Cluster
    from telemetry.services.ingest.streams import RecordStream

    cluster = Cluster.objects.get(name=CLUSTER)
    stream = RecordStream(actor=SYSTEM_ACTOR, cluster=cluster, source="slurm_reader")
    labs = [f"l{number:04}" for number in range(options.labs)] + (["big"] if options.big else [])
    changes = _changes(labs, options.first)
    stream.write([next(changes)[1]])  # opens the batch; its event is not counted
    revoked_at = 0.0
    ticks, each = round(options.seconds / TICK_S), round(options.rate * TICK_S)
    cpu, start = time.process_time(), time.monotonic() + 0.5
    with options.file.open("w") as file:
        for tick in range(ticks):
            due = start + tick * TICK_S
            time.sleep(max(0.0, due - time.monotonic()))
            batch = [next(changes) for _ in range(each)]
            began = time.monotonic()
            counts = stream.write([record for _, record in batch])
            committed = time.monotonic()
            assert counts.created_rows + counts.updated_rows == each, counts
            for (lab, record), key in zip(batch, map(_key, batch), strict=True):
                file.write(f"{key},{lab},{due:.6f},{began:.6f},{committed:.6f},{record.state}\n")
            if options.revoke and tick == ticks // 2:
                from portal.core import clock

                AgentToken.objects.filter(key__in=options.revoke.split(",")).update(revoked_at=clock.now())
                revoked_at = time.monotonic()
    stream.close()
    print(  # noqa: T201
        json.dumps({"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - start, "revoked_at": revoked_at})
    )
    return 0


def _key(change: tuple[str, Any]) -> int:
    """Return what names an event in what subscribers note: the job and how many letters its state has."""
    record = change[1]
    return int(record.raw_job_id) * 4 + ("PENDING", "RUNNING", "COMPLETED").index(record.state)


def _changes(labs: list[str], first: int) -> Any:
    """Yield a lab and a record of one of its jobs for ever: jobs are submitted, start a while later, and end."""
    from telemetry.engine.slurm.records import JobRecord

    ids, waiting, running = count(first), deque[Any](), deque[Any]()
    lab_of: dict[int, str] = {}
    for turn in count():
        now = int(time.time())
        if turn % 3 == 1 and len(waiting) > len(labs):
            old = waiting.popleft()
            record = old._replace(
                state="RUNNING", eligible_s=old.submit_s, start_s=now, started=True, node_list="c0401", reason=""
            )
            running.append(record)
        elif turn % 3 == 2 and len(running) > len(labs):
            old = running.popleft()
            record = old._replace(state="COMPLETED", end_s=now, elapsed_s=now - old.start_s)
        else:
            job = next(ids)
            lab = lab_of[job] = labs[job % len(labs)]
            record = JobRecord(
                raw_job_id=job, job_id=str(job), user=f"{lab}u000", state="PENDING", submit_s=now, timelimit_s=3600,
                nodes=1, cpus=16, req_cpus=16, account=f"{lab}_acct", cluster=CLUSTER, partition="shared",
                qos="normal", job_name="dock", submit_line="sbatch dock.sh", work_dir="/scratch/bench",
                reason="Priority",
            )  # fmt: skip
            waiting.append(record)
        yield lab_of[record.raw_job_id], record


if __name__ == "__main__":
    sys.exit(main())
