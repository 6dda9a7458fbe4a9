"""A lab stops its own agents, an owner theirs; neither gives back what staff stopped."""

import contextlib
import threading
from datetime import timedelta

import pytest
from django.db import connection

from portal.core import clock
from portal.core.errors import Conflict, NotAllowed, NotFound
from principals import permissions
from principals import services as principal_services
from principals.models import Agent, Hold, KillSwitch, Lab
from principals.services import kill_switches
from tests import factories
from tests.conftest import Api, Cast, sign_in

pytestmark = pytest.mark.django_db


def stop(cast: Cast, who: str, whose: str):
    form = {"whose": whose, "reason": "It loops.", "hours": "8"}
    return sign_in(getattr(cast, who)).post(f"/my-lab/{cast.lab.name}/stop/", form)


def stop_by_service(cast: Cast, who: str, lab: Lab | None) -> KillSwitch:
    until = clock.now() + timedelta(hours=1)
    return kill_switches.stop_own(actor=factories.actor_of(getattr(cast, who)), lab=lab, reason="A test.", until=until)


def works(token: str) -> bool:
    return Api(token).get("/me").status_code == 200


@pytest.fixture
def tokens(cast: Cast) -> dict[str, str]:
    others = factories.make_agent(cast.lab, cast.manager, "okafor-manager")
    agents = {"agent": cast.agent, "others": others, "foreign": cast.foreign_agent}
    return {name: factories.make_token(agent) for name, agent in agents.items()}


@pytest.mark.parametrize("who", ["pi", "manager"])
def test_a_lab_stops_all_its_agents_alone_and_no_other(cast: Cast, tokens, settings, who: str) -> None:
    settings.KILL_SWITCH_ALONE = 0
    assert stop(cast, who, "lab").status_code == 302
    assert {name for name, token in tokens.items() if not works(token)} == {"agent", "others"}
    switch = KillSwitch.objects.get()
    assert (switch.state, switch.hold.code, switch.hold.placed_as) == ("in_force", "stopped_by_lab", "lab")
    page = sign_in(cast.staff).get("/kill-switch/").content.decode()
    assert switch.target_label in page
    back = sign_in(cast.manager).post(f"/my-lab/{cast.lab.name}/stop/{switch.pk}/give-back/", {"reason": "Mended."})
    assert back.status_code == 302
    assert all(map(works, tokens.values()))


def test_an_owner_stops_theirs_and_gives_them_back(cast: Cast, tokens) -> None:
    owner = cast.agent.owner
    switch = stop_by_service(cast, "colleague", None)
    assert owner == cast.colleague
    assert {name for name, token in tokens.items() if not works(token)} == {"agent"}
    assert switch.target_label in sign_in(owner).get("/my-lab/").content.decode()
    kill_switches.give_back_own(actor=factories.actor_of(owner), lab=cast.lab, switch=switch, reason="Over.")
    assert works(tokens["agent"])


def test_a_member_stops_no_lab(cast: Cast) -> None:
    assert stop(cast, "colleague", "lab").status_code == 422
    for who in ("colleague", "outsider", "auditor", "staff"):
        with pytest.raises(NotAllowed):
            stop_by_service(cast, who, cast.lab)
    assert not KillSwitch.objects.exists()


def test_what_staff_stopped_the_lab_does_not_give_back(cast: Cast, tokens) -> None:
    by_lab = stop_by_service(cast, "pi", cast.lab)
    until = clock.now() + timedelta(hours=1)
    by_staff = kill_switches.pull(
        actor=factories.actor_of(cast.staff), target=kill_switches.find_target("lab", cast.lab.name), reason="Leak.",
        until=until,
    )  # fmt: skip
    pi = factories.actor_of(cast.pi)
    with pytest.raises(NotFound):
        kill_switches.give_back_own(actor=pi, lab=cast.lab, switch=by_staff, reason="No.")
    kill_switches.give_back_own(actor=pi, lab=cast.lab, switch=by_lab, reason="Over.")
    assert not works(tokens["agent"])


def test_staff_give_back_what_a_lab_stopped(cast: Cast, tokens) -> None:
    switch = stop_by_service(cast, "pi", cast.lab)
    kill_switches.end(actor=factories.actor_of(cast.infosec), switch=switch, reason="It was all a mistake.")
    assert works(tokens["agent"])


SUSPENDED_AND_RESUMED = {
    "staff, then PI": ("staff", "pi", False), "staff, then its owner": ("staff", "colleague", False),
    "InfoSec, then a manager": ("infosec", "manager", False), "PI, then its owner": ("pi", "colleague", False),
    "PI, then a manager": ("pi", "manager", True), "its owner, then PI": ("colleague", "pi", True),
    "its owner, then themselves": ("colleague", "colleague", True), "PI, then staff": ("pi", "staff", True),
}  # fmt: skip


@pytest.mark.parametrize("case", SUSPENDED_AND_RESUMED)
def test_nobody_resumes_what_somebody_higher_suspended(cast: Cast, case: str) -> None:
    first, second, may = SUSPENDED_AND_RESUMED[case]
    principal_services.suspend_agent(actor=factories.actor_of(getattr(cast, first)), agent=cast.agent, reason="Loops.")
    other = getattr(cast, second)
    assert ("Resume agent" in sign_in(other).get(f"/agents/{cast.agent.name}/").content.decode()) is may
    if may:
        principal_services.resume_agent(actor=factories.actor_of(other), agent=cast.agent, reason="Mended.")
    else:
        with pytest.raises(NotAllowed) as refused:
            principal_services.resume_agent(actor=factories.actor_of(other), agent=cast.agent, reason="Mended.")
        assert refused.value.code == "suspended_by_another"
    assert Hold.objects.in_force().filter(kind="suspension").exists() is not may


def test_an_owner_who_suspends_first_keeps_nobody_higher_from_it(cast: Cast) -> None:
    def page(who: str) -> str:
        return sign_in(getattr(cast, who)).get(f"/agents/{cast.agent.name}/").content.decode()

    def suspend(who: str) -> None:
        principal_services.suspend_agent(actor=factories.actor_of(getattr(cast, who)), agent=cast.agent, reason="Leak.")

    suspend("colleague")
    for who, below in (("pi", "colleague"), ("staff", "pi")):
        assert "Suspend it as well" in page(who) and "Suspend it as well" not in page(below)
        suspend(who)
        for again in (below, who):
            with pytest.raises(Conflict):
                suspend(again)
        with pytest.raises(NotAllowed):
            principal_services.resume_agent(
                actor=factories.actor_of(getattr(cast, below)), agent=cast.agent, reason="x"
            )
    principal_services.resume_agent(actor=factories.actor_of(cast.staff), agent=cast.agent, reason="Mended.")
    assert not Hold.objects.in_force().filter(kind="suspension").exists()


@pytest.mark.sql
@pytest.mark.django_db(transaction=True)
def test_what_staff_suspend_while_its_owner_resumes_it_stays(cast: Cast, monkeypatch) -> None:
    """Whoever resumes lifts the holds that they looked at: never one that somebody higher placed since."""
    principal_services.suspend_agent(actor=factories.actor_of(cast.colleague), agent=cast.agent, reason="Loops.")
    looked, done, outranks = threading.Event(), threading.Event(), permissions.outranks
    owners = Agent.objects.get(pk=cast.agent.pk)

    def slowly(actor, lab_id, hold) -> bool:
        may = outranks(actor, lab_id, hold)
        if actor.user == cast.colleague:
            looked.set()
            done.wait(1)  # the others wait for our commit, or are done by then
        return may

    def suspend_anew() -> None:
        looked.wait(30)
        try:
            principal_services.resume_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="It is mended.")
        except Conflict:
            cast.agent.refresh_from_db()
        finally:
            with contextlib.suppress(Conflict):
                principal_services.suspend_agent(actor=factories.actor_of(cast.staff), agent=cast.agent, reason="Leak.")
            done.set()
            connection.close()

    monkeypatch.setattr(permissions, "outranks", slowly)
    other = threading.Thread(target=suspend_anew)
    other.start()
    principal_services.resume_agent(actor=factories.actor_of(cast.colleague), agent=owners, reason="It is mended.")
    other.join(30)
    assert Hold.objects.in_force().filter(kind="suspension").values_list("placed_as", flat=True).get() == "facility"
