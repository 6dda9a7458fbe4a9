"""A little of what the demo's agents do off login nodes: in a job, over SSH, on a host for agents, behind a gateway.

All of it is of people whose agent is at work on a login node too, under the same harness: no job becomes another's.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final
from uuid import UUID

from portal.demo.activity import agent_minute, boot_of, node_minute
from portal.demo.drafts import SessionPlan
from portal.demo.facility import Facility
from portal.demo.history import Stage
from principals.actors import SYSTEM_ACTOR
from telemetry import services as telemetry_services
from telemetry.engine.activity import CONNECTION
from telemetry.engine.activity_batches import Batch, Health, MinutePart, Place, SessionPart, SshPart

# Place, node ("": the login node that they are on anyway), how many people, the first of the jobs that they run in.
_ELSEWHERE: Final[Sequence[tuple[Place, str, int, int | None]]] = (
    ("agent_host", "agents01", 6, None), ("job", "c0042", 5, 812_345), ("ssh", "", 5, None),
)  # fmt: skip
_BEGAN: Final = timedelta(hours=5)
_LASTED: Final = timedelta(hours=3)
_MINUTE: Final = timedelta(minutes=1)
_VISITORS: Final = 5
_COME: Final = 12  # connections by SSH, of unknown kind, in a minute that has any
_USER_AGENTS: Final = {
    "claude-code": "claude-cli/2.1.7 (external, cli)", "codex": "codex_cli_rs/0.55.0", "cursor": "Cursor/1.7.44",
    "copilot": "GitHubCopilotChat/0.26.7", "gemini-cli": "GeminiCLI/0.9.0", "aider": "aider/0.86",
    "opencode": "opencode/0.15", "goose": "goose/1.9", "amp": "amp/0.0.17",
}  # fmt: skip
_BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
_PROGRAM: Final = "python-requests/2.32.3"
_LOOK: Final = "/pun/sys/dashboard/activejobs"


def tell_all(stage: Stage, facility: Facility, rng: Random) -> None:
    """Record a batch of each place, and import the log of a day of the gateway."""
    began = (stage.now - _BEGAN).replace(second=0, microsecond=0)
    agents = _at_work(facility, began)
    for place, host, number, job in _ELSEWHERE:
        nodes = defaultdict[str, list[SessionPlan]](list)
        for plan in rng.sample(agents, min(number, len(agents))):
            nodes[host or plan.host].append(plan)
        for node, plans in sorted(nodes.items()):
            batch = _batch(rng, place, node, plans, job, began)
            telemetry_services.record_activity(actor=SYSTEM_ACTOR, cluster=stage.cluster, batch=batch)
    telemetry_services.refresh_activity(stage.cluster)
    visitors = rng.sample(agents, min(_VISITORS, len(agents)))
    telemetry_services.import_gateway_log(
        actor=SYSTEM_ACTOR, cluster=stage.cluster, lines=_log(rng, visitors, began), kind="ondemand", host="ondemand",
        name="access.log", asked=telemetry_services.Asked(UTC),
    )  # fmt: skip


def _at_work(facility: Facility, began: datetime) -> list[SessionPlan]:
    """Return a session of each person whose agent has been at work since before, and goes on."""
    found: dict[str, SessionPlan] = {}
    for plan in facility.sessions:
        if plan.kind == "agent" and plan.ended_s is None and plan.started_s < began.timestamp():
            found.setdefault(plan.login, plan)
    return list(found.values())


def _batch(
    rng: Random, place: Place, host: str, plans: Sequence[SessionPlan], job: int | None, began: datetime
) -> Batch:  # fmt: skip
    ended = began + _LASTED
    ids = [f"{900_000 + number}-{int(began.timestamp()) % 10**8 * 100 + number}" for number in range(len(plans))]
    sessions = [
        SessionPart(
            name, "agent", plan.harness, plan.login, began, ended, ended, place, job + number if job else None,
            "ssh_key" if place == "ssh" else "",
        )
        for number, (name, plan) in enumerate(zip(ids, plans, strict=True))
    ]  # fmt: skip
    minutes: list[MinutePart] = [
        agent_minute(rng, name, began + minute * _MINUTE)
        for name in ids
        for minute in sorted(rng.sample(range(1, 170), 30))
    ]
    nobodys = [node_minute(rng, began + minute * _MINUTE, place) for minute in range(5, 170, 40)]
    told: list[SshPart] = []
    if place == "ssh":
        nobodys = [each._replace(counts={**each.counts, CONNECTION: _COME}) for each in nobodys]
        came = _COME * len(nobodys)
        told = [SshPart(began.date(), came, 1, rng.randrange(5, 9), rng.randrange(5, 8), rng.randrange(9, 14))]
    minutes += nobodys
    commands = sum(each.counts["commands"] for each in minutes)
    health = Health(commands * 3, 0, commands // 60, 0, 1.0, commands * 0.004, 40 * 2**20, rng.randrange(60, 300))
    return Batch(
        host=host, boot=boot_of(host), run=str(UUID(int=rng.getrandbits(128), version=4)),
        batch=str(UUID(int=rng.getrandbits(128), version=4)), collector="0.1.0", mode="events", study="", since=began,
        until=began + _BEGAN, health=health, sessions=sessions, minutes=minutes,
        ssh=told,
    )  # fmt: skip


def _log(rng: Random, plans: Sequence[SessionPlan], began: datetime) -> list[str]:
    """Write the lines of agents that look at their jobs, and of people and programs beside them."""
    told = []
    for plan in plans:
        first = began + rng.randrange(20) * _MINUTE
        agent = _USER_AGENTS.get(plan.harness, _PROGRAM)
        told += [(first + step * timedelta(minutes=7), plan.login, agent) for step in range(12)]
    others = (_BROWSER, _BROWSER, _PROGRAM)
    told += [(began + rng.randrange(170) * _MINUTE, "u0102", rng.choice(others)) for _ in range(90)]
    return [
        f"10.31.0.9 - {login} [{at.strftime('%d/%b/%Y:%H:%M:%S +0000')}] "
        f'"GET {_LOOK} HTTP/1.1" 200 5120 "-" "{agent}"\n'
        for at, login, agent in sorted(told)
    ]
