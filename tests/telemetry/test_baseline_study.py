"""Studies of people's own shells: who may start one, what has to be said, and when it is over."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from telemetry import services
from telemetry.models import BaselineStudy
from tests import factories
from tests.conftest import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
SPRING = datetime(2026, 7, 7, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _in_spring():
    with clock.at(SPRING):
        yield


def start(cast: Cast, **fields: Any) -> BaselineStudy:
    given = {
        "actor": factories.actor_of(cast.staff), "name": "spring", "purpose": "A baseline for agents.",
        "approved_by": "IRB 2026-114", "until": SPRING + timedelta(days=25),
    } | fields  # fmt: skip
    return services.start_study(cluster=cast.cluster, **given)


def run(*line: str) -> str:
    out = StringIO()
    call_command("baseline_study", *line, stdout=out)
    return out.getvalue().strip()


def test_it_works(cast: Cast):
    study = start(cast)
    assert (study.state, BaselineStudy.objects.running().get()) == ("running", study)
    event = AuditEvent.objects.get(verb="study.start")
    assert event.payload["after"]["approved_by"] == "IRB 2026-114"
    services.end_study(actor=factories.actor_of(cast.staff), study=study)
    study.refresh_from_db()
    assert (study.state, study.ended) == ("ended", SPRING)
    assert not BaselineStudy.objects.running().exists()
    assert AuditEvent.objects.filter(verb="study.end").count() == 1


def test_a_study_is_over_when_its_time_is(cast: Cast):
    study = start(cast, starts=SPRING + timedelta(days=1))
    assert study.state == "planned"
    with clock.at(SPRING + timedelta(days=2)):
        assert study.state == "running"
    with clock.at(SPRING + timedelta(days=25)):
        assert study.state == "ended" and not BaselineStudy.objects.running().exists()
    moment = timedelta(minutes=1)
    assert study.covers(study.starts, study.starts) and study.covers(study.until - moment, study.until)
    assert not study.covers(study.starts - 2 * moment, study.starts - moment)
    assert not study.covers(study.until, study.until + moment)


def test_to_end_a_study_twice_is_to_end_it_once(cast: Cast):
    study = start(cast)
    services.end_study(actor=factories.actor_of(cast.staff), study=study)
    with clock.at(SPRING + timedelta(days=1)):
        assert services.end_study(actor=factories.actor_of(cast.staff), study=study).ended == SPRING
    assert AuditEvent.objects.filter(verb="study.end").count() == 1


@pytest.mark.parametrize("who", ["pi", "infosec", "auditor", "colleague"])
def test_staff_alone_start_and_end_studies(cast: Cast, who: str):
    actor = factories.actor_of(getattr(cast, who))
    with pytest.raises(NotAllowed):
        start(cast, actor=actor)
    study = start(cast)
    with pytest.raises(NotAllowed):
        services.end_study(actor=actor, study=study)
    assert list(BaselineStudy.objects.visible_to(actor)) == [study], "everybody may know what is studied"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "Spring term"}, "study_name_invalid"),
        ({"purpose": " "}, "study_purpose_invalid"),
        ({"approved_by": ""}, "study_approval_invalid"),
        ({"approved_by": "x" * 151}, "study_approval_invalid"),
        ({"purpose": "a\nb"}, "study_purpose_invalid"),
        ({"until": SPRING}, "study_period_invalid"),
        ({"starts": SPRING - timedelta(days=9), "until": SPRING - timedelta(days=1)}, "study_period_invalid"),
        ({"until": SPRING + timedelta(days=93)}, "study_period_invalid"),
    ],
)
def test_a_study_needs_a_purpose_an_approval_and_an_end(cast: Cast, fields: dict[str, Any], code: str):
    with pytest.raises(Invalid) as refused:
        start(cast, **fields)
    assert refused.value.code == code
    assert not BaselineStudy.objects.exists() and not AuditEvent.objects.filter(verb="study.start").exists()


def test_a_name_stands_for_one_study(cast: Cast):
    services.end_study(actor=factories.actor_of(cast.staff), study=start(cast))
    with pytest.raises(Conflict):
        start(cast)


def test_the_command_starts_lists_and_ends(cast: Cast):
    assert run("list") == "There is no study: people are not observed."
    told = run("start", "paper", "--cluster", "ASTER", "--purpose", "A baseline.", "--approved-by", "IRB 2026-114",
               "--from", "2026-07-08", "--until", "2026-08-01")  # fmt: skip
    expected = "paper on aster: planned, 2026-07-08 to 2026-08-01 (UTC), approved by IRB 2026-114. A baseline."
    assert told == run("list", "--cluster", "aster") == expected
    assert BaselineStudy.objects.get().until == datetime(2026, 8, 2, tzinfo=UTC)
    with clock.at(SPRING + timedelta(days=3)):
        assert run("end", "paper", "--cluster", "aster").startswith("paper on aster: ended, 2026-07-08 to 2026-07-10")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["start", "x", "--cluster", "aster"], "--until"),
        (["start", "x", "--cluster", "nowhere", "--until", "2026-08-01"], "--cluster"),
        (["start", "x", "--cluster", "aster", "--until", "tomorrow"], "tomorrow"),
        (["start", "x", "--cluster", "aster", "--until", "2026-08-01"], "purpose"),
        (["end", "x", "--cluster", "aster"], "'x'"),
        (["end"], "--cluster"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(cast: Cast, line: list[str], said: str):
    with pytest.raises(CommandError) as refused:
        run(*line)
    assert said in str(refused.value) and "\n" not in str(refused.value)
