"""What collectors tell of those who come by SSH: agents' keys make sessions, all others sums of a node's day."""

import re
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest

from principals.models import AgentSession
from telemetry.models import SshDay
from tests import factories
from tests.conftest import Cast, sign_in
from tests.telemetry.activity_batches import agent_session, counted, minute, reasons, record

pytestmark = [pytest.mark.django_db, pytest.mark.sql, pytest.mark.usefixtures("standing_clock")]


def keyed(**fields: Any) -> dict[str, Any]:
    """A session that a listed key tells."""
    return agent_session(place="ssh", evidence="ssh_key", **fields)


def day(**fields: Any) -> dict[str, Any]:
    told = {"day": minute(5).date(), "connections": 40, "untold": 2, "keys": 7, "clients": 6, "pairs": 9}
    return told | fields


def stored() -> list[tuple[int, ...]]:
    return list(SshDay.objects.order_by("pk").values_list("connections", "untold", "keys", "clients", "pairs"))


# --- agents' keys -----------------------------------------------------------------------------------------------
def test_a_session_keeps_what_told_that_it_is_an_agents(cast: Cast) -> None:
    assert not record(cast.cluster, sessions=[keyed()]).rejected
    row = AgentSession.objects.get()
    assert (row.evidence, row.place, row.agent) == ("ssh_key", "ssh", cast.agent)
    assert "by its own SSH key" in sign_in(cast.colleague).get(cast.agent.get_absolute_url()).content.decode()


@pytest.mark.parametrize(("who", "is_found"), [("second", True), ("nobodys", False), ("foreign", False)])
def test_of_several_agents_of_a_person_it_is_the_one_that_is_named(cast: Cast, who: str, is_found: bool) -> None:
    second = factories.make_agent(cast.lab, cast.colleague, "okafor-second", harness=cast.agent.harness)
    name = {"second": second.name, "foreign": cast.foreign_agent.name}.get(who, who)
    record(cast.cluster, sessions=[keyed(agent=name)])
    assert AgentSession.objects.get().agent == (second if is_found else None)


@pytest.mark.parametrize("fields", [{"place": "login"}, {"place": "job"}, {"evidence": "", "agent": "okafor-docking"}])
def test_evidence_of_ssh_is_of_sessions_over_ssh(cast: Cast, fields: dict[str, Any]) -> None:
    assert reasons(record(cast.cluster, sessions=[keyed() | fields])) == [("sessions", 0, "evidence_elsewhere")]
    assert not AgentSession.objects.exists()


# --- all others -------------------------------------------------------------------------------------------------
def test_sums_of_a_day_grow_and_what_comes_late_changes_nothing(cast: Cast) -> None:
    later = day(connections=41, pairs=10)
    for told in (day(), later, later, day()):
        assert record(cast.cluster, ssh=[told]).accepted["ssh"] == 1
    assert stored() == [(41, 2, 7, 6, 10)]
    record(cast.cluster, ssh=[day()], run=str(uuid4()))
    assert len(stored()) == 2, "of each start of a collector"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"pairs": 39}, "ssh_contradicts"), ({"keys": 10}, "ssh_contradicts"), ({"clients": 10}, "ssh_contradicts"),
        ({"untold": 32}, "ssh_contradicts"), ({"day": date(2026, 1, 1)}, "outside_batch"),
        ({"day": minute(5).date() + timedelta(days=2)}, "outside_batch"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(cast: Cast, fields: dict[str, Any], reason: str) -> None:
    assert reasons(record(cast.cluster, ssh=[day(**fields)])) == [("ssh", 0, reason)]
    assert not stored()


def test_a_day_comes_once_in_a_batch(cast: Cast) -> None:
    assert reasons(record(cast.cluster, ssh=[day(), day(connections=50)])) == [("ssh", 1, "ssh_twice")]


def page(cast: Cast) -> str:
    from telemetry import services

    services.refresh_activity()
    html = sign_in(cast.staff).get("/login-nodes/").content.decode()
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_the_page_tells_sums_and_no_number_of_few(cast: Cast) -> None:
    over_ssh = counted("", "unknown", ssh_connection=40) | {"place": "ssh"}
    record(cast.cluster, minutes=[over_ssh])
    assert "40 – not read not read not read 3 Text and file tools 66.7 %" in page(cast)
    record(cast.cluster, ssh=[day(keys=3)])
    assert "40 5.0 % fewer than 5 6 9 3" in page(cast)
    record(cast.cluster, ssh=[day(keys=4)], run=str(uuid4()))
    assert "at most 7 6 to 12 9 to 18" in page(cast)


def test_nobody_else_reads_them(cast: Cast) -> None:
    record(cast.cluster, ssh=[day()])
    for who in (cast.pi, cast.colleague, cast.manager):
        assert not SshDay.objects.visible_to(factories.actor_of(who)).exists()
    assert SshDay.objects.visible_to(factories.actor_of(cast.auditor)).exists()
