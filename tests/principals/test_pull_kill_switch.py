"""The kill switch: whoever it is on is stopped, nobody else is, and what was is given back."""

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from portal.core.models import AuditEvent, LiveEvent
from principals import services as principal_services
from principals.models import Hold, KillSwitch, LabMembership, User
from principals.services import kill_switches as switches
from tests import factories
from tests.conftest import Api, Cast

pytestmark = [pytest.mark.django_db, pytest.mark.sql]


def pull(
    cast: Cast, kind: str, which: str = "", *, who: User | None = None, hours: int = 1, **more: bool
) -> KillSwitch:
    return switches.pull(
        actor=factories.actor_of(who or cast.staff), target=switches.find_target(kind, which), reason="A test.",
        until=clock.now() + timedelta(hours=hours), **more,
    )  # fmt: skip


def status_of(token: str) -> int:
    return Api(token).get("/me").status_code


@pytest.fixture
def tokens(cast: Cast) -> dict[str, str]:
    """Tokens of an agent of the lab, of another of its owner in it, of a colleague's, and of a foreign one."""
    second = factories.make_agent(cast.lab, cast.agent.owner, "okafor-second", harness="codex")
    others = factories.make_agent(cast.lab, cast.manager, "okafor-manager", harness=cast.agent.harness)
    agents = {"agent": cast.agent, "second": second, "others": others, "foreign": cast.foreign_agent}
    return {name: factories.make_token(agent) for name, agent in agents.items()}


@pytest.mark.parametrize(
    ("kind", "stopped"),
    [
        ("agent", {"agent"}), ("owner", {"agent", "second"}), ("lab", {"agent", "second", "others"}),
        ("harness", {"agent", "others", "foreign"}), ("all", {"agent", "second", "others", "foreign"}),
    ],
)  # fmt: skip
def test_it_stops_whom_it_is_on_and_gives_them_back(cast: Cast, tokens, kind: str, stopped: set[str]) -> None:
    cast.foreign_agent.harness = cast.agent.harness
    cast.foreign_agent.save()
    which = {"agent": cast.agent.name, "owner": cast.agent.owner.username, "lab": cast.lab.name,
             "harness": cast.agent.harness, "all": ""}[kind]  # fmt: skip
    assert {status_of(token) for token in tokens.values()} == {200}
    switch = pull(cast, kind, which)
    assert {name for name, token in tokens.items() if status_of(token) == 403} == stopped
    assert {name for name, token in tokens.items() if status_of(token) == 200} == set(tokens) - stopped
    assert switch.reach["agents"] == len(stopped)
    refusal = Api(tokens["agent"]).get("/me").json()
    assert (refusal["code"], "A test." in refusal["detail"]) == ("kill_switch", True)
    switches.end(actor=factories.actor_of(cast.infosec), switch=switch, reason="Over.")
    assert {status_of(token) for token in tokens.values()} == {200}


def test_other_holds_outlive_it(cast: Cast, tokens) -> None:
    principal_services.suspend_agent(actor=factories.actor_of(cast.pi), agent=cast.agent, reason="polls")
    switch = pull(cast, "harness", cast.agent.harness)
    switches.end(actor=factories.actor_of(cast.staff), switch=switch, reason="Over.")
    assert (status_of(tokens["agent"]), status_of(tokens["others"])) == (403, 200)


def test_an_agent_registered_meanwhile_is_stopped_as_well(cast: Cast) -> None:
    pull(cast, "harness", "codex")
    late = factories.make_agent(cast.lab, cast.manager, "okafor-late", harness="codex")
    with pytest.raises(Conflict) as refused:
        factories.make_token(late)
    assert refused.value.code == "kill_switch"


def test_the_person_goes_on(cast: Cast, client) -> None:
    pull(cast, "owner", cast.agent.owner.username)
    client.force_login(cast.agent.owner)
    assert client.post("/theme/", {"theme": "dark", "next": "/agents/"}).status_code == 302
    assert client.post(f"/agents/{cast.agent.name}/suspend/", {"reason": "mine"}).status_code == 302


def test_it_ends_by_itself(cast: Cast, tokens) -> None:
    switch = pull(cast, "all", hours=1)
    assert status_of(tokens["agent"]) == 403
    with clock.at(clock.now() + timedelta(hours=1, seconds=1)):
        assert not switch.is_in_force
        assert not Hold.objects.in_force().exists()


def test_a_drill_stops_nobody_and_is_recorded(cast: Cast, tokens) -> None:
    switch = pull(cast, "all", is_drill=True)
    assert (switch.state, switch.hold, switch.reach["agents"]) == ("drill", None, 4)
    assert status_of(tokens["agent"]) == 200
    assert AuditEvent.objects.filter(verb="kill_switch.drill").exists()


class TestTwoPeople:
    @pytest.fixture(autouse=True)
    def _more_than_two(self, settings) -> None:
        settings.KILL_SWITCH_ALONE = 2

    def test_many_are_stopped_by_two(self, cast: Cast, tokens) -> None:
        switch = pull(cast, "lab", cast.lab.name)
        assert (switch.state, status_of(tokens["agent"])) == ("asked", 200)
        with pytest.raises(NotAllowed) as refused:
            switches.second(actor=factories.actor_of(cast.staff), switch=switch)
        assert refused.value.code == "second_person_needed"
        switches.second(actor=factories.actor_of(cast.infosec), switch=switch)
        assert status_of(tokens["agent"]) == 403

    def test_few_are_stopped_by_one(self, cast: Cast, tokens) -> None:
        assert pull(cast, "owner", cast.agent.owner.username).state == "in_force"

    def test_what_one_person_stops_one_by_one_counts_together(self, cast: Cast, tokens) -> None:
        assert pull(cast, "owner", cast.agent.owner.username).state == "in_force"
        assert pull(cast, "agent", cast.agent.name).state == "in_force"  # among those already: two, not three
        third = pull(cast, "agent", cast.foreign_agent.name)
        assert (third.state, status_of(tokens["foreign"])) == ("asked", 200)
        assert pull(cast, "agent", "okafor-manager", who=cast.infosec).state == "in_force"  # they stopped nobody yet

    def test_what_is_given_back_or_a_day_old_or_agreed_counts_no_more(self, cast: Cast, tokens) -> None:
        two = pull(cast, "owner", cast.agent.owner.username, hours=72)
        assert switches.count_alone(switches.find_target("agent", cast.foreign_agent.name), cast.staff) == 3
        with clock.at(clock.now() + timedelta(hours=24, seconds=1)):
            assert switches.stopped_alone(cast.staff) == []
        switches.end(actor=factories.actor_of(cast.staff), switch=two, reason="Over.")
        switches.second(actor=factories.actor_of(cast.infosec), switch=pull(cast, "lab", cast.lab.name))
        assert switches.stopped_alone(cast.staff) == []
        assert pull(cast, "agent", cast.foreign_agent.name).state == "in_force"

    def test_staff_who_make_themselves_managers_count_what_they_stop_as_such(self, cast: Cast, tokens) -> None:
        for lab in (cast.lab, cast.foreign_agent.lab):
            LabMembership.objects.create(lab=lab, user=cast.staff, role="manager")
        until = clock.now() + timedelta(hours=1)
        with pytest.raises(Conflict) as refused:
            switches.stop_own(actor=factories.actor_of(cast.staff), lab=cast.lab, reason="All of it.", until=until)
        assert refused.value.code == "second_person_needed"
        switches.stop_own(actor=factories.actor_of(cast.staff), lab=cast.foreign_agent.lab, reason="Few.", until=until)
        assert pull(cast, "owner", cast.agent.owner.username).state == "asked"
        switches.stop_own(actor=factories.actor_of(cast.pi), lab=cast.lab, reason="All of it.", until=until)

    @pytest.mark.parametrize("change", [{"is_active": False}, {"is_research_computing": False}], ids=["left", "moved"])
    def test_one_who_lost_their_office_is_none_of_two(self, cast: Cast, tokens, change: dict[str, bool]) -> None:
        switch = pull(cast, "all")
        User.objects.filter(pk=cast.staff.pk).update(**change)
        with pytest.raises(Conflict) as refused:
            switches.second(actor=factories.actor_of(cast.infosec), switch=switch)
        assert refused.value.code == "kill_switch_asker_left"

    def test_a_drill_takes_one(self, cast: Cast, tokens) -> None:
        assert pull(cast, "all", is_drill=True).state == "drill"

    def test_a_request_waits_an_hour(self, cast: Cast, tokens) -> None:
        switch = pull(cast, "all", hours=48)
        with clock.at(clock.now() + timedelta(minutes=61)), pytest.raises(Conflict):
            switches.second(actor=factories.actor_of(cast.infosec), switch=switch)

    def test_what_is_withdrawn_is_not_agreed_to(self, cast: Cast, tokens) -> None:
        switch = pull(cast, "all")
        switches.withdraw(actor=factories.actor_of(cast.infosec), switch=switch, reason="A false alarm.")
        with pytest.raises(Conflict):
            switches.second(actor=factories.actor_of(cast.infosec), switch=switch)
        assert not Hold.objects.filter(kind="kill_switch").exists()


def test_the_same_is_not_stopped_twice_but_may_be_for_longer(cast: Cast) -> None:
    first = pull(cast, "all", hours=2)
    with pytest.raises(Conflict) as refused:
        pull(cast, "all", hours=1)
    assert refused.value.code == "kill_switch_in_force"
    longer = pull(cast, "all", hours=3)
    switches.end(actor=factories.actor_of(cast.staff), switch=first, reason="The longer one holds.")
    assert longer.is_in_force
    assert Hold.objects.in_force().filter(kind="kill_switch").count() == 1


def test_its_owner_pi_and_staff_are_told_and_no_other(cast: Cast) -> None:
    pull(cast, "owner", cast.agent.owner.username)
    topics = {topic for event in LiveEvent.objects.filter(name="hold.placed") for topic in event.topics}
    told = {f"agent:{cast.agent.pk}", f"user:{cast.agent.owner_id}", f"lab:{cast.lab.pk}"}
    assert topics == told | {"facility:principals"}


@pytest.mark.parametrize("who", ["pi", "manager", "colleague", "outsider", "auditor"])
def test_staff_and_infosec_alone_pull_it(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        pull(cast, "agent", cast.agent.name, who=getattr(cast, who))


def test_it_asks_for_a_reason_and_an_end(cast: Cast) -> None:
    target = switches.find_target("all")
    actor = factories.actor_of(cast.staff)
    for reason, hours, code in (
        ("  ", 1, "reason_missing"),
        ("x", -1, "until_out_of_range"),
        ("x", 24 * 31, "until_out_of_range"),
    ):
        with pytest.raises(Invalid) as refused:
            switches.pull(actor=actor, target=target, reason=reason, until=clock.now() + timedelta(hours=hours))
        assert refused.value.code == code


@pytest.mark.parametrize(("kind", "which"), [("agent", "nobody"), ("owner", ""), ("lab", "x"), ("harness", "made-up"),
                                             ("service", "collector"), ("", "")])  # fmt: skip
def test_what_is_not_there_is_not_stopped(cast: Cast, kind: str, which: str) -> None:
    with pytest.raises(NotFound):
        switches.find_target(kind, which)


def test_what_is_ended_is_not_ended_again(cast: Cast) -> None:
    switch = pull(cast, "all")
    actor = factories.actor_of(cast.staff)
    switches.end(actor=actor, switch=switch, reason="Over.")
    with pytest.raises(Conflict):
        switches.end(actor=actor, switch=switch, reason="Over.")


@pytest.mark.django_db(transaction=True)
def test_two_who_pull_it_at_once_make_one(cast: Cast) -> None:
    """One is refused, or finds the other's in force: a hold that nobody's switch lifts would stay."""
    begin, made, refused = threading.Barrier(2), list[KillSwitch](), list[Exception]()

    def run(who: User) -> None:
        begin.wait()
        try:
            made.append(pull(cast, "all", who=who))
        except Conflict as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(who,)) for who in (cast.staff, cast.infosec)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    # Ends differ by microseconds: the later one may last longer, and then stands beside the first with its own hold.
    assert len(made) + len(refused) == 2
    assert Hold.objects.filter(kind="kill_switch").count() == len(made) == len({switch.hold_id for switch in made})


@pytest.mark.django_db(transaction=True)
def test_one_who_pulls_two_at_once_is_counted_once_for_both(cast: Cast, settings) -> None:
    settings.KILL_SWITCH_ALONE = 1
    begin, states = threading.Barrier(2), list[str]()

    def run(name: str) -> None:
        try:
            begin.wait(30)
            states.append(pull(cast, "agent", name).state)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(agent.name,)) for agent in (cast.agent, cast.foreign_agent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(states) == ["asked", "in_force"]


@pytest.mark.django_db(transaction=True)
def test_what_somebody_agrees_to_is_not_withdrawn_meanwhile(cast: Cast, settings, monkeypatch) -> None:
    """Of a yes and a no at once one is refused: nobody is told that nobody was stopped while agents are."""
    settings.KILL_SWITCH_ALONE = 0
    asked = pull(cast, "all")
    agrees, other_ended, refused = threading.Event(), threading.Event(), list[Exception]()
    place_hold = switches.place_hold

    def slowly(**options: object) -> Hold:
        agrees.set()
        other_ended.wait(1)  # the other waits for our commit, or ends now
        return place_hold(**options)

    monkeypatch.setattr(switches, "place_hold", slowly)

    def run(act: Callable[[], object]) -> None:
        try:
            act()
        except Conflict as error:
            refused.append(error)
        finally:
            connection.close()

    def withdraw() -> None:
        agrees.wait(30)
        try:
            switches.withdraw(actor=factories.actor_of(cast.staff), switch=asked, reason="A mistake.")
        finally:
            other_ended.set()

    second = partial(switches.second, actor=factories.actor_of(cast.infosec), switch=asked)
    threads = [threading.Thread(target=run, args=(act,)) for act in (second, withdraw)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(refused) == 1
    asked.refresh_from_db()
    assert (asked.state, asked.ended_by, asked.end_reason) == (KillSwitch.State.IN_FORCE, None, "")
