"""What the report says of trials: how soon they start, and which look abused; nothing where there are none."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from policies.figures import REPORT
from policies.selectors import trial_period
from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import User
from telemetry.figures import Measured, Readings, measure_figure
from telemetry.selectors import Period, Scope
from tests import factories
from tests.conftest import Cast, sign_in
from tests.policies.worlds import make_job, make_trial
from tests.telemetry.job_rows import DAY_0

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
JULY = Period.month(2026, 7)
BY_KEY = {figure.key: figure for figure in REPORT}


@pytest.fixture(autouse=True)
def _july() -> Any:
    with time_machine.travel(DAY_0, tick=False):
        yield


def measured(cast: Cast, key: str, period: Period = JULY) -> Measured:
    found = measure_figure(BY_KEY[key], Readings(Scope(SYSTEM_ACTOR, cast.cluster, period)))
    assert found is not None
    return found


def people(number: int) -> list[User]:
    return [factories.make_user() for _ in range(number)]


def trial(cast: Cast, user: User, *, after_s: int = 0, wait_s: int = 30, used_s: int = 60, **job: Any) -> None:
    """A trial of ten minutes whose job ended."""
    submit = clock.now() + timedelta(seconds=after_s)
    start = submit + timedelta(seconds=wait_s)
    made = make_job(
        cast.cluster, user, cast.lab, submit=submit, start=start, end=start + timedelta(seconds=used_s),
        state="COMPLETED", **{"timelimit_s": 600, "nodes": 1, "job_name": "relax"} | job,
    )  # fmt: skip
    make_trial(cast, user=user, state="used", job=made)


@pytest.mark.parametrize("key", BY_KEY)
def test_without_trials_it_is_not_measured_yet(cast: Cast, key: str) -> None:
    make_trial(cast)
    found = measured(cast, key)
    assert (found.value, found.rows, found.needs) == (None, (), "trials whose jobs are known")


def test_trials_start_after_their_median_wait(cast: Cast) -> None:
    for number, user in enumerate(people(5)):
        trial(cast, user, wait_s=10 * (number + 1))
    found = measured(cast, "trial-wait")
    assert (found.value, found.rows[0].values) == (30, (30, None, None, 5, 5))
    assert measured(cast, "trial-wait", Period.month(2026, 8)).value is None


def test_links_lead_to_the_trials_behind_the_figures(cast: Cast) -> None:
    month_s = 31 * 86_400
    for user in people(5):
        for months in range(3):
            trial(cast, user, after_s=month_s * months)
    trial(cast, people(1)[0], wait_s=month_s)  # submitted in July, and run in August
    browser = sign_in(cast.staff)
    for key, behind in (("trial-wait", trial_period.trial_waits), ("acceptance-trial-abuse", trial_period.trial_runs)):
        for period in (JULY, Period.between("2026-07-15", "2026-08-20")):
            scope = Scope(SYSTEM_ACTOR, cast.cluster, period)
            link = BY_KEY[key].link
            assert link is not None
            rows = browser.get(f"{link(scope)}&format=json").json()
            assert len(rows) == len(behind(scope)) == (5 if period == JULY else 6)
    other = factories.make_cluster("birch")
    assert browser.get(f"{link(Scope(SYSTEM_ACTOR, other, JULY))}&format=json").json() == []
    assert "ended in July 2026" in browser.get(link(Scope(SYSTEM_ACTOR, cast.cluster, JULY))).content.decode()
    assert browser.get("/trials/requests/?started=x&ended=2026-13").status_code == 200


def test_a_wait_of_few_people_is_withheld(cast: Cast) -> None:
    for user in people(4):
        trial(cast, user)
    assert (measured(cast, "trial-wait").value, measured(cast, "trial-wait").rows) == (None, ())


def test_abuse_is_a_share_of_trials_and_held_against_what_was_agreed(cast: Cast, settings: Any) -> None:
    many = people(15)
    for user in many[:5]:
        trial(cast, user, gpus=2)
    for user in many[5:]:
        trial(cast, user)
    for agreed, is_met in ((None, None), (0.5, True), (0.1, False)):
        settings.TRIAL_ABUSE_LIMIT = agreed
        found = measured(cast, "acceptance-trial-abuse")
        assert (found.value, found.is_met) == (5 / 15, is_met)
    rows = {row.key: row.values for row in found.rows}
    assert rows == {"any": (5 / 15, 5, 5), "larger": (5 / 15, 5, 5), "chained": (0, 0, 0)}


def test_abuse_by_few_is_withheld_and_its_verdict_is_not(cast: Cast, settings: Any) -> None:
    settings.TRIAL_ABUSE_LIMIT = 0.1
    many = people(10)
    for user in many:
        trial(cast, user, job_name=f"relax-{user.pk}")
    for number in range(3):
        trial(cast, many[0], after_s=700 * number, used_s=600, job_name="chain")
    found = measured(cast, "acceptance-trial-abuse")
    assert (found.value, found.is_met) == (None, False)
    assert {row.values for row in found.rows} == {(None, None, None)}
