"""What the report says of keys, unsafe commands and open services, as detectors told of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from principals.actors import SYSTEM_ACTOR
from security import services
from security.engine.incidents import State
from security.figures import REPORT
from security.models import Incident
from telemetry.figures import Measured, Readings, measure_figure
from telemetry.selectors import Period, Scope
from tests import factories
from tests.conftest import Cast, sign_in
from tests.security.support import finding, report

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
JULY = Period.month(2026, 7)
BY_KEY = {figure.key: figure for figure in REPORT}
JULY_20 = datetime(2026, 7, 20, 12, tzinfo=UTC)
AUGUST_9 = datetime(2026, 8, 9, tzinfo=UTC)


@pytest.fixture
def logins(cast: Cast) -> list[str]:
    return [factories.make_cluster_user(cast.cluster, factories.make_user()).login for _ in range(6)]


def measured(cast: Cast, key: str, period: Period = JULY, at: datetime = AUGUST_9) -> Measured:
    with time_machine.travel(at, tick=False):
        found = measure_figure(BY_KEY[key], Readings(Scope(SYSTEM_ACTOR, cast.cluster, period)))
    assert found is not None
    return found


def token(number: int) -> str:
    return "ghp_" + f"aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3k{number:02}"


def expose(cast: Cast, login: str, number: int, *, at: datetime = JULY_20, **said: Any) -> Incident:
    evidence = f'curl -H "Authorization: token {token(number)}" https://api.example.org'
    with time_machine.travel(at, tick=False):
        (outcome,) = report(cast, finding(login=login, evidence=evidence, occurred=at, **said), at=at)
    return Incident.objects.get(pk=outcome.incident_id)


def move(cast: Cast, incident: Incident, *states: State, at: datetime) -> None:
    incident.refresh_from_db()
    for state in states:
        services.move_incident(
            actor=factories.actor_of(cast.infosec), incident=incident, to=state.value, reason="done", at=at
        )


@pytest.mark.parametrize("key", BY_KEY)
def test_a_silence_of_no_detector_is_not_measured_yet(cast: Cast, key: str) -> None:
    found = measured(cast, key)
    assert found.value is None and found.needs.startswith("a detector")


def test_keys_are_counted_once_each_and_at_each_place(cast: Cast, logins: list[str]) -> None:
    for number, login in enumerate(logins):
        expose(cast, login, number)
        expose(cast, login, number, surface="job_output")
    expose(cast, logins[0], 9, at=JULY_20 - timedelta(days=30))
    found = measured(cast, "exposed-keys")
    assert (found.value, found.unknown_share, found.note) == (6, 0, "")
    assert {row.key: row.values for row in found.rows} == {"argv": (6, 6, 6), "job_output": (6, 6, 6)}


def test_false_alarms_are_no_keys(cast: Cast, logins: list[str]) -> None:
    incidents = [expose(cast, login, number) for number, login in enumerate(logins)]
    move(cast, incidents[0], State.FALSE_ALARM, at=JULY_20 + timedelta(hours=1))
    assert measured(cast, "exposed-keys").value == 5


def test_keys_of_few_people_are_withheld(cast: Cast, logins: list[str]) -> None:
    for login in logins[:4]:
        expose(cast, login, int(logins.index(login)))
    found = measured(cast, "exposed-keys")
    assert (found.value, found.rows) == (None, ())


def test_old_keys_are_those_open_at_the_end_for_more_than_a_week(cast: Cast, logins: list[str]) -> None:
    incidents = [expose(cast, login, number) for number, login in enumerate(logins)]
    found = measured(cast, "acceptance-keys")
    assert (found.value, found.is_met, found.criterion) == (6, False, "None older than 7 days")
    move(cast, incidents[0], State.TRIAGED, State.CONTAINED, State.RESOLVED, at=JULY_20 + timedelta(days=1))
    # What was done after the period ended changes nothing of how it ended.
    move(cast, incidents[1], State.TRIAGED, State.CONTAINED, State.RESOLVED, at=JULY.ends + timedelta(days=1))
    assert measured(cast, "acceptance-keys").value == 5
    young = measured(cast, "acceptance-keys", Period(JULY.first, JULY_20.date()))
    assert (young.value, young.is_met) == (0, True)


def test_a_reopened_one_is_as_old_as_its_reopening(cast: Cast, logins: list[str]) -> None:
    incidents = [expose(cast, login, number, at=JULY_20 - timedelta(days=18)) for number, login in enumerate(logins)]
    for incident in incidents:
        move(cast, incident, State.TRIAGED, State.CONTAINED, State.RESOLVED, at=JULY_20 - timedelta(days=17))
        move(cast, incident, State.REOPENED, at=JULY.ends - timedelta(days=2))
    assert measured(cast, "acceptance-keys").value == 0
    assert measured(cast, "acceptance-keys", Period.month(2026, 8)).value == 6


def test_old_keys_of_few_people_are_withheld_and_the_verdict_is_not(cast: Cast) -> None:
    expose(cast, "colleague", 1)
    found = measured(cast, "acceptance-keys")
    assert (found.value, found.is_met) == (None, False)


def test_safeguards_and_services_are_incidents_by_kind(cast: Cast, logins: list[str]) -> None:
    for login in logins:
        for kind, evidence in (("unsafe_command", "chmod -R 777 /n"), ("exposed_service", "jupyter --ip=0.0.0.0")):
            with time_machine.travel(JULY_20, tick=False):
                said = finding(login=login, kind=kind, evidence=evidence, occurred=JULY_20)
                report(cast, said, at=JULY_20)
    assert measured(cast, "open-services").rows[0].values == (6, 6, 6)
    found = measured(cast, "weakened-safeguards")
    assert (found.value, [row.values for row in found.rows]) == (6, [(6, 6, 6), (0, 0, 0)])
    with time_machine.travel(JULY_20, tick=False):
        report(cast, finding(kind="sandbox_widening", evidence="--sandbox off", occurred=JULY_20), at=JULY_20)
    found = measured(cast, "weakened-safeguards")
    assert (found.value, [row.values for row in found.rows]) == (None, [(6, 6, 6), (None, None, None)])


def test_the_number_opens_the_incidents_behind_it(cast: Cast, logins: list[str]) -> None:
    for number, login in enumerate(logins):
        expose(cast, login, number)
    expose(cast, logins[0], 9, at=JULY_20 - timedelta(days=30), host="login07")
    scope = Scope(SYSTEM_ACTOR, cast.cluster, JULY)
    link = BY_KEY["exposed-keys"].link
    assert link is not None
    address = link(scope)
    assert address == "/incidents/?state=all&kind=exposed_secret&from=2026-07-01&to=2026-07-31&cluster=aster"
    with time_machine.travel(AUGUST_9, tick=False):
        browser = sign_in(cast.staff)
        listed = browser.get(f"{address}&format=json").json()
        assert len(listed) == 6
        assert b"Seen 2026-07-01 to 2026-07-31" in browser.get(address).content
        assert browser.get("/incidents/?from=July&to=x&cluster=a%00b").status_code == 200
