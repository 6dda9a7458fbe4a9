"""The owner of an unregistered session claims it for an agent of theirs, and takes it back."""

from datetime import timedelta
from typing import Any

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent
from principals import services as principal_services
from principals.models import Agent, AgentSession, SessionClaim, User
from telemetry.models import PendingAttribution
from tests import factories
from tests.conftest import Cast


def _seen(cast: Cast, user: User, *, hours_ago: float = 1, **fields: Any) -> AgentSession:
    """A session as a collector saw it, with nobody's agent."""
    started = clock.now() - timedelta(hours=hours_ago)
    told = {"kind": "agent", "harness": "claude-code", "host": "login01", "process": f"boot:{hours_ago}"} | fields
    return AgentSession.objects.create(
        cluster=cast.cluster, cluster_user=factories.make_cluster_user(cast.cluster, user), started=started,
        source="collector", **told,
    )  # fmt: skip


def _claim(cast: Cast, session: AgentSession, *, who: User | None = None, **more: Any) -> SessionClaim:
    told: dict[str, Any] = {"agent": cast.agent} | more
    return principal_services.claim_session(actor=factories.actor_of(who or cast.colleague), session=session, **told)


def _agents() -> dict[int, str | None]:
    return dict(AgentSession.objects.values_list("pk", "agent__name"))


def test_its_owner_claims_it_and_its_jobs_follow(cast: Cast) -> None:
    session = _seen(cast, cast.colleague)
    _claim(cast, session)
    assert _agents() == {session.pk: "okafor-docking"}
    assert PendingAttribution.objects.filter(cluster_user=session.cluster_user).count() == 1
    row = AuditEvent.objects.get(verb="session.claim")
    assert row.payload["after"]["sessions"] == 1 and row.actor_label == "colleague"


def test_earlier_ones_of_the_same_harness_and_login_go_along_if_wanted(cast: Cast) -> None:
    old, new = _seen(cast, cast.colleague, hours_ago=30, ended=clock.now()), _seen(cast, cast.colleague)
    others = [
        _seen(cast, cast.colleague, hours_ago=5, harness="codex"),
        _seen(cast, cast.pi, hours_ago=6),
        _seen(cast, cast.colleague, hours_ago=0.5),  # later than the one
        _seen(cast, cast.colleague, hours_ago=24 * 40),
    ]
    _claim(cast, new, with_earlier=True)
    assert _agents() == {old.pk: "okafor-docking", new.pk: "okafor-docking"} | {each.pk: None for each in others}


def test_alone_it_takes_nothing_along(cast: Cast) -> None:
    old, new = _seen(cast, cast.colleague, hours_ago=3), _seen(cast, cast.colleague)
    _claim(cast, new)
    assert _agents()[old.pk] is None


def test_earlier_ones_where_it_may_not_work_stay(cast: Cast) -> None:
    Agent.objects.filter(pk=cast.agent.pk).update(hosts=["login01"])
    cast.agent.refresh_from_db()
    elsewhere, here = _seen(cast, cast.colleague, hours_ago=2, host="login02"), _seen(cast, cast.colleague)
    _claim(cast, here, with_earlier=True)
    assert _agents()[elsewhere.pk] is None
    with pytest.raises(Invalid) as caught:
        _claim(cast, elsewhere)
    assert caught.value.code == "host_not_allowed"


@pytest.mark.parametrize("who", ["pi", "manager", "outsider", "staff", "infosec"])
def test_nobody_claims_another_persons(cast: Cast, who: str) -> None:
    session = _seen(cast, cast.colleague)
    with pytest.raises(NotAllowed):
        _claim(cast, session, who=getattr(cast, who))
    assert _agents() == {session.pk: None}


def test_nor_for_another_persons_agent(cast: Cast) -> None:
    session = _seen(cast, cast.colleague)
    with pytest.raises(NotAllowed):
        _claim(cast, session, agent=factories.make_agent(cast.lab, cast.pi))


def test_nor_for_another_harness_or_a_retired_agent(cast: Cast) -> None:
    session = _seen(cast, cast.colleague)
    with pytest.raises(Invalid) as caught:
        _claim(cast, session, agent=factories.make_agent(cast.lab, cast.colleague, harness="codex"))
    assert caught.value.code == "harness_differs"
    with pytest.raises(Conflict):
        _claim(cast, session, agent=factories.make_agent(cast.lab, cast.colleague, status="retired"))


def test_what_is_an_agents_already_is_not_claimed(cast: Cast) -> None:
    session = _seen(cast, cast.colleague, agent=factories.make_agent(cast.lab, cast.colleague))
    with pytest.raises(Conflict) as caught:
        _claim(cast, session)
    assert caught.value.code == "session_claimed"


def test_a_claim_is_taken_back_once(cast: Cast) -> None:
    claim = _claim(cast, _seen(cast, cast.colleague))
    actor = factories.actor_of(cast.colleague)
    assert principal_services.undo_claim(actor=actor, claim=claim) == 1
    assert set(_agents().values()) == {None}
    assert AuditEvent.objects.filter(verb="session.undo_claim").count() == 1
    with pytest.raises(Conflict):
        principal_services.undo_claim(actor=actor, claim=claim)


def test_what_was_taken_back_is_not_tied_by_itself_again(cast: Cast) -> None:
    session = _seen(cast, cast.colleague)
    principal_services.undo_claim(actor=factories.actor_of(cast.colleague), claim=_claim(cast, session))
    told = principal_services.DeclaredSession(
        login="colleague", host="login01", kind="agent", harness="claude-code", started=session.started,
        process=session.process, last_seen=clock.now(), source="collector",
    )  # fmt: skip
    recorded = principal_services.record_sessions(cluster=cast.cluster, sessions=[told])
    assert recorded[0].unregistered == "declared_before" and _agents() == {session.pk: None}
    _claim(cast, session)  # but its owner may change their mind
    assert _agents() == {session.pk: "okafor-docking"}


@pytest.mark.parametrize("who", ["pi", "outsider", "staff"])
def test_nobody_else_takes_it_back(cast: Cast, who: str) -> None:
    claim = _claim(cast, _seen(cast, cast.colleague))
    with pytest.raises(NotAllowed):
        principal_services.undo_claim(actor=factories.actor_of(getattr(cast, who)), claim=claim)


def test_only_ones_own_are_asked_about(cast: Cast) -> None:
    mine = _seen(cast, cast.colleague)
    _seen(cast, cast.pi, hours_ago=2)
    _seen(cast, cast.colleague, hours_ago=3, kind="interactive", harness="")
    assert list(principal_services.unregistered_of(factories.actor_of(cast.colleague))) == [mine]
    assert not principal_services.unregistered_of(factories.actor_of(cast.staff)).exists()


def test_what_is_this_agents_already_is_not_claimed_so_that_undoing_takes_nothing_away(cast: Cast) -> None:
    tied, free = _seen(cast, cast.colleague, hours_ago=2, agent=cast.agent), _seen(cast, cast.colleague)
    with pytest.raises(Conflict) as caught:
        _claim(cast, tied)
    assert caught.value.code == "session_claimed"
    claim = _claim(cast, free, with_earlier=True)
    principal_services.undo_claim(actor=factories.actor_of(cast.colleague), claim=claim)
    assert _agents() == {tied.pk: "okafor-docking", free.pk: None}


def test_what_began_too_long_ago_is_not_claimed(cast: Cast) -> None:
    session = _seen(cast, cast.colleague, hours_ago=24 * 31)
    with pytest.raises(Conflict) as caught:
        _claim(cast, session)
    assert caught.value.code == "session_too_old" and _agents() == {session.pk: None}
