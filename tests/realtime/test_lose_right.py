"""Losing a right: whoever may listen no longer is closed within 5 s, and hears nothing after."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.core import clock, live
from portal.realtime import fingerprints, rights, tail, viewers
from principals import permissions
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentToken, Hold, LabMembership, ServiceAccount, User
from principals.services import holds, kill_switches
from principals.services.tokens import issuing as token_services
from tests import factories
from tests.conftest import Cast, sign_in
from tests.realtime.conftest import Sockets, cookie_of, tell

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sql]
CLOSES_WITHIN_S = 5.0
make_token = sync_to_async(factories.make_token)


@pytest.fixture
def no_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights are looked at when something tells of a change, never by the clock."""
    monkeypatch.setattr(tail, "RECHECK_S", 3600.0)


@pytest.fixture
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at is what matters here; that the true interval keeps the promise is tested once."""
    monkeypatch.setattr(tail, "RECHECK_S", 0.2)


def _revoke(cast: Cast) -> None:
    token = AgentToken.objects.get(agent=cast.agent)
    token_services.revoke_agent_token(actor=factories.actor_of(cast.pi), token=token)


def _hold(kind: str, subject_id: int) -> None:
    holds.place_hold(
        actor=SYSTEM_ACTOR, subject_kind=kind, subject_id=subject_id, kind=Hold.Kind.CONTAINMENT, code="contained",
        reason="A key of this agent was found in the open.", remedy="Speak to InfoSec.",
    )  # fmt: skip


def _pull(cast: Cast, kind: str, which: str = "") -> None:
    kill_switches.pull(
        actor=factories.actor_of(cast.staff), target=kill_switches.find_target(kind, which), reason="A test.",
        until=clock.now() + timedelta(hours=1),
    )  # fmt: skip


LOSSES: dict[str, tuple[Callable[[Cast], object], int]] = {
    "its token is revoked": (_revoke, 4401),
    "its token's row says revoked, and nobody told": (
        lambda cast: AgentToken.objects.update(revoked_at=clock.now()), 4401,
    ),
    "its token expires": (lambda cast: AgentToken.objects.update(expires=clock.now()), 4401),
    "its token loses the scope": (lambda cast: AgentToken.objects.update(scopes=["me:read"]), 4403),
    "its token is bound elsewhere": (lambda cast: AgentToken.objects.update(networks=["10.9.0.0/16"]), 4403),
    "a hold is placed on it": (lambda cast: _hold("agent", cast.agent.pk), 4403),
    "a hold is placed on its owner": (lambda cast: _hold("user", cast.agent.owner_id), 4403),
    "a hold is placed on its lab": (lambda cast: _hold("lab", cast.agent.lab_id), 4403),
    "the kill switch is pulled for its harness": (lambda cast: _pull(cast, "harness", cast.agent.harness), 4403),
    "the kill switch is pulled for all": (lambda cast: _pull(cast, "all"), 4403),
    "it is suspended": (lambda cast: Agent.objects.update(status=Agent.Status.SUSPENDED), 4403),
    "its registration ends": (lambda cast: Agent.objects.update(expires=clock.now()), 4403),
    "its owner leaves": (lambda cast: User.objects.filter(pk=cast.agent.owner_id).update(is_active=False), 4403),
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
async def test_an_agents_socket_closes_within_5_s_when(
    loss: str, cast: Cast, sockets: Sockets, quick_rounds: None
) -> None:
    change, code = LOSSES[loss]
    lab = f"test-lab:{cast.lab.pk}"
    socket = await sockets.listen(f"topics={lab}", token=await make_token(cast.agent))
    other = await sockets.listen(f"topics={lab}", cookie=await cookie_of(cast.pi))
    await sync_to_async(change)(cast)
    closed = await socket.next(CLOSES_WITHIN_S)
    assert (closed["type"], closed["code"]) == ("closed", code)
    assert closed["reason"]
    assert await socket.close_code() == code
    await tell("after", topics=(lab,))
    assert await other.next_events(1) == ["after"]


def _sign_out(cast: Cast) -> None:
    Session.objects.all().delete()


def _new_password(cast: Cast) -> None:
    user = User.objects.get(pk=cast.colleague.pk)
    user.set_password("another long password")
    user.save(update_fields=["password"])


PERSON_LOSSES: dict[str, tuple[Callable[[Cast], object], int]] = {
    "signs out": (_sign_out, 4401),
    "gets a new password": (_new_password, 4401),
    "is made inactive": (lambda cast: User.objects.filter(pk=cast.colleague.pk).update(is_active=False), 4401),
    "leaves the lab": (lambda cast: LabMembership.objects.filter(user=cast.colleague).delete(), 4403),
}


@pytest.mark.parametrize("loss", PERSON_LOSSES)
async def test_a_persons_socket_closes_within_5_s_when_who_listens(
    loss: str, cast: Cast, sockets: Sockets, quick_rounds: None
) -> None:
    change, code = PERSON_LOSSES[loss]
    socket = await sockets.listen(cookie=await cookie_of(cast.colleague))
    await sync_to_async(change)(cast)
    assert (await socket.next(CLOSES_WITHIN_S))["code"] == code
    assert await socket.close_code() == code


async def test_a_revocation_that_nobody_tells_of_closes_the_socket_within_5_s(cast: Cast, sockets: Sockets) -> None:
    socket = await sockets.listen(token=await make_token(cast.agent))
    changed_at = asyncio.get_running_loop().time()
    await AgentToken.objects.aupdate(revoked_at=clock.now())
    assert (await socket.next(CLOSES_WITHIN_S))["code"] == 4401
    assert await socket.close_code() == 4401
    assert asyncio.get_running_loop().time() - changed_at < CLOSES_WITHIN_S


async def test_a_role_that_is_taken_closes_what_it_let_hear(cast: Cast, sockets: Sockets, quick_rounds: None) -> None:
    socket = await sockets.listen("topics=test-all:x", cookie=await cookie_of(cast.staff))
    await sync_to_async(User.objects.filter(pk=cast.staff.pk).update)(is_research_computing=False)
    closed = await socket.next(CLOSES_WITHIN_S)
    assert closed["code"] == 4403
    assert "test-all:x" in closed["reason"]


async def test_a_grant_that_is_withdrawn_closes_what_it_let_hear(
    cast: Cast, sockets: Sockets, quick_rounds: None
) -> None:
    await sync_to_async(permissions.grant_look_at_lab)(cast.outsider, cast.lab)
    socket = await sockets.listen(f"topics=test-lab:{cast.lab.pk}", cookie=await cookie_of(cast.outsider))
    await asyncio.sleep(0.2)
    await sync_to_async(permissions.withdraw_look_at_lab)(cast.outsider, cast.lab)
    assert (await socket.next(CLOSES_WITHIN_S))["code"] == 4403


async def test_a_revocation_that_is_told_is_acted_on_at_once(cast: Cast, sockets: Sockets, no_rounds: None) -> None:
    socket = await sockets.listen(f"topics=test-lab:{cast.lab.pk}", token=await make_token(cast.agent))
    await sync_to_async(_revoke)(cast)
    assert (await socket.next(2))["code"] == 4401


async def test_a_told_change_of_permissions_is_acted_on_at_once(cast: Cast, sockets: Sockets, no_rounds: None) -> None:
    socket = await sockets.listen("topics=test-all:x", cookie=await cookie_of(cast.staff))
    await sync_to_async(User.objects.filter(pk=cast.staff.pk).update)(is_research_computing=False)
    await tell(live.PERMISSIONS_CHANGED, topics=())
    assert (await socket.next(2))["code"] == 4403


async def test_who_keeps_their_right_stays(cast: Cast, sockets: Sockets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "RECHECK_S", 0.05)
    socket = await sockets.listen(cookie=await cookie_of(cast.colleague))
    agent = await sockets.listen(token=await make_token(cast.agent))
    assert await socket.receive_nothing(0.5)
    await tell("news", topics=(f"test-lab:{cast.lab.pk}",))
    assert await socket.next_events(1) == await agent.next_events(1) == ["news"]


def _viewers_of(users: list[User]) -> list[viewers.Viewer]:
    return [
        viewers.Viewer(f"session:{user.pk}", f"user:{user.pk}", lambda: SYSTEM_ACTOR, user.pk, f"s{user.pk}")
        for user in users
    ]


def test_the_check_costs_the_same_queries_for_one_viewer_and_for_forty(cast: Cast) -> None:
    fingerprints.of_viewers(_viewers_of([cast.pi]))  # content types are looked up once a process
    with CaptureQueriesContext(connection) as one:
        fingerprints.of_viewers(_viewers_of([cast.pi]))
    people = [factories.make_user() for _ in range(40)]
    with CaptureQueriesContext(connection) as many:
        fingerprints.of_viewers(_viewers_of(people))
    assert len(one) == len(many) <= 4


def test_a_service_that_is_switched_off_changes_its_fingerprint(cast: Cast) -> None:
    plain = factories.make_service_token(name="reader")
    key = plain.split("_")[1].split(".")[0]
    viewer = viewers.Viewer(f"token:{key}@", "service:1", lambda: SYSTEM_ACTOR, token_key=key)
    before = fingerprints.of_viewers([viewer])
    assert before == fingerprints.of_viewers([viewer])
    ServiceAccount.objects.filter(name="reader").update(is_active=False)
    assert before != fingerprints.of_viewers([viewer])


STANDINGS: dict[str, Callable[[Cast], viewers.Viewer]] = {
    "a PI": lambda cast: _in_session(cast.pi),
    "a member": lambda cast: _in_session(cast.colleague),
    "staff": lambda cast: _in_session(cast.staff),
    "one who was let look": lambda cast: _in_session(cast.outsider),
    "an agent": lambda cast: _with_token(factories.make_token(cast.agent)),
    "an agent of a manager that reads its lab": lambda cast: _with_token(
        factories.make_token(factories.make_agent(cast.lab, cast.pi), "events:read", "lab:read")
    ),
    "an agent of a member that would": lambda cast: _with_token(
        factories.make_token(cast.agent, "events:read", "lab:read", network_ranges=["192.0.2.0/24"])
    ),
}


def _in_session(user: User) -> viewers.Viewer:
    return viewers.of_session(sign_in(user).cookies["sessionid"].value)[0]


def _with_token(plain: str) -> viewers.Viewer:
    scope = {"headers": [(b"authorization", f"Bearer {plain}".encode())], "client": ("192.0.2.7", 40_000)}
    return viewers.of_token(viewers.request_of_scope(scope))[0]


@pytest.mark.parametrize("who", STANDINGS)
def test_who_was_just_let_in_is_not_built_again(who: str, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands that come back at once after a restart would else delay what a revocation needs."""
    permissions.grant_look_at_lab(cast.outsider, cast.lab)
    viewer = STANDINGS[who](cast)
    assert fingerprints.of_viewers([viewer]) == {viewer.key: viewer.standing}
    assert viewer.standing is not None
    assert rights.Rights().losses({viewer: {"nothing:x"}}) == {}


def test_who_opens_again_under_other_rights_is_another_viewer(cast: Cast) -> None:
    cookie = sign_in(cast.colleague).cookies["sessionid"].value
    known, lab = rights.Rights(), f"test-lab:{cast.lab.pk}"
    first, _ = viewers.of_session(cookie)
    assert known.losses({first: {lab}}) == {}
    LabMembership.objects.filter(user=cast.colleague).update(role=LabMembership.Role.MANAGER)
    second, _ = viewers.of_session(cookie)
    LabMembership.objects.filter(user=cast.colleague).update(role=LabMembership.Role.MEMBER)
    assert set(known.losses({first: {lab}, second: {lab}})) == {second}


def test_a_token_that_is_bound_elsewhere_has_no_standing(cast: Cast) -> None:
    viewer = _with_token(factories.make_token(cast.agent))
    AgentToken.objects.update(networks=["10.9.0.0/16"])
    assert fingerprints.of_viewers([viewer]) == {viewer.key: None}


def test_a_loss_between_opening_and_the_first_round_is_found(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    request = viewers.request_of_scope({"headers": [(b"authorization", f"Bearer {plain}".encode())]})
    viewer, _ = viewers.of_token(request)
    AgentToken.objects.update(expires=clock.now() - timedelta(seconds=1))
    losses = rights.Rights().losses({viewer: {f"test-lab:{cast.lab.pk}"}})
    assert losses[viewer].whole is not None
    assert losses[viewer].whole.code == "token_expired"
