"""What the gateways' servers would have logged of the visits, and of people beside them: a text a day and gateway."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from random import Random
from typing import Final

from portal.demo.paper.places import published
from portal.demo.paper.places.visits import Visit, requests_of
from portal.demo.paper.plan import Plan
from portal.demo.plan import HUMAN

_FORM: Final = "/pun/sys/dashboard/batch_connect/sys/bc_desktop/session_contexts"
_LOOK: Final = "/pun/sys/dashboard/activejobs?jobcluster=all"
_OTHERS_A_DAY: Final = 40  # requests of people’s browsers, and half as many of programs
Line = tuple[int, str]


def daily_logs(rng: Random, plan: Plan, visits: Sequence[Visit], system: str) -> Iterator[tuple[date, str, list[str]]]:
    """Yield (UTC day, kind of gateway, lines in order of time)."""
    lines: dict[tuple[date, str], list[Line]] = defaultdict(list)
    for visit in visits:
        login, agent = plan.people[visit.person].login, published.USER_AGENTS[visit.harness]
        for at_s, submits in requests_of(visit):
            text = _line(visit.gateway, at_s, login, agent, submits, system)
            lines[datetime.fromtimestamp(at_s, UTC).date(), visit.gateway].append((at_s, text))
    people = [person.login for _, person in sorted(plan.people.items()) if person.kind == HUMAN]
    for day, gateway in sorted(lines):
        midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        for number in range(_OTHERS_A_DAY * 3 // 2):
            agent = published.BROWSER if number < _OTHERS_A_DAY else published.PROGRAM
            at_s = midnight + rng.randrange(86_400)
            text = _line(gateway, at_s, rng.choice(people), agent, False, system)
            lines[day, gateway].append((at_s, text))
        yield day, gateway, [text for _, text in sorted(lines[day, gateway])]


def _line(gateway: str, at_s: int, login: str, agent: str, submits: bool, system: str) -> str:
    at = datetime.fromtimestamp(at_s, UTC)
    if gateway == "ondemand":
        request = f"POST {_FORM}" if submits else f"GET {_LOOK}"
        status = 302 if submits else 200
        when = at.strftime("%d/%b/%Y:%H:%M:%S +0000")
        return f'10.20.30.40 - {login} [{when}] "{request} HTTP/1.1" {status} 5120 "-" "{agent}"\n'
    fields = {
        "asctime": at.strftime("%Y-%m-%d %H:%M:%S,250"), "levelname": "INFO", "name": "f7t_v2_tracing_log",
        "message": "", "username": login, "system_name": system, "endpoint": f"/compute/{system}/jobs",
        "resource": "compute", "status_code": 201 if submits else 200, "user_agent": agent,
    }  # fmt: skip
    return json.dumps(fields) + "\n"
