"""An agent has what its owner has, as it is now: whoever leaves the lab takes the agent's rights along."""

import pytest

from portal.core.errors import NotAllowed
from portal.realtime.fingerprints import of_viewers
from portal.realtime.viewers import Viewer
from principals import auth, permissions
from principals.models import AgentSession, LabMembership
from tests import factories
from tests.conftest import Cast, sign_in

ANYWHERE = "192.0.2.7"


def test_a_token_stops_when_its_owner_leaves_the_lab(cast: Cast) -> None:
    plain = factories.make_token(cast.agent)
    LabMembership.objects.filter(user=cast.colleague, lab=cast.lab).delete()
    with pytest.raises(NotAllowed) as caught:
        auth.actor_for_token(plain, address=ANYWHERE)
    assert caught.value.code == "owner_outside_lab"


def test_those_who_listen_are_checked_again_when_the_owners_place_changes(cast: Cast) -> None:
    row = factories.token_row(factories.make_token(cast.agent, "events:read", "lab:read"))
    viewer = Viewer("token", f"agent:{cast.agent.pk}", lambda: permissions.actor_for_agent(row), token_key=row.key)
    before = of_viewers([viewer])
    LabMembership.objects.filter(user=cast.colleague, lab=cast.lab).update(role=LabMembership.Role.MANAGER)
    promoted = of_viewers([viewer])
    LabMembership.objects.filter(user=cast.colleague, lab=cast.lab).delete()
    assert before != promoted != of_viewers([viewer]) == {"token": None}


def test_a_former_member_answers_for_the_agent_no_more(cast: Cast) -> None:
    LabMembership.objects.filter(user=cast.colleague, lab=cast.lab).delete()
    actor = factories.actor_of(cast.colleague)
    for verb in ("agent.issue_token", "agent.resume", "agent.retire"):
        assert not permissions.can(actor, verb, cast.agent)


def test_lab_read_reaches_as_far_as_the_owner_does(cast: Cast) -> None:
    row = factories.token_row(factories.make_token(cast.agent, "lab:read"))
    assert permissions.actor_for_agent(row).visible_lab_ids == frozenset()
    LabMembership.objects.filter(user=cast.colleague, lab=cast.lab).update(role=LabMembership.Role.MANAGER)
    assert permissions.actor_for_agent(row).visible_lab_ids == {cast.lab.pk}
    LabMembership.objects.filter(user=cast.colleague, lab=cast.lab).update(role=LabMembership.Role.MEMBER)
    permissions.grant_look_at_lab(cast.colleague, cast.lab)
    assert permissions.actor_for_agent(row).visible_lab_ids == {cast.lab.pk}


def test_a_pi_sees_no_session_of_a_members_agent_in_another_lab(cast: Cast) -> None:
    LabMembership.objects.create(lab=cast.other_lab, user=cast.colleague, role="member")
    elsewhere = factories.make_agent(cast.other_lab, cast.colleague)
    login = factories.make_cluster_user(cast.cluster, cast.colleague)
    common = {"cluster": cast.cluster, "cluster_user": login, "host": "login01", "harness": "claude-code"}
    AgentSession.objects.create(**common, started=1_780_000_000, agent=elsewhere)
    own = AgentSession.objects.create(**common, started=1_780_000_100, agent=cast.agent)
    unregistered = AgentSession.objects.create(**common, started=1_780_000_200)
    seen = set(AgentSession.objects.visible_to(factories.actor_of(cast.pi)).values_list("pk", flat=True))
    assert seen == {own.pk, unregistered.pk}


def test_an_auditor_changes_nothing_whatever_else_they_are(cast: Cast) -> None:
    cast.pi.is_auditor = True
    cast.pi.save()
    browser = sign_in(cast.pi)
    assert browser.get(f"/agents/{cast.agent.name}/").status_code == 200
    answer = browser.post(f"/agents/{cast.agent.name}/suspend/", {"reason": "because", "days": "0"})
    assert answer.status_code == 403
    cast.agent.refresh_from_db()
    assert cast.agent.status == "active"


def test_what_people_write_about_an_agent_holds_no_secret(cast: Cast) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    sign_in(cast.pi).post(f"/agents/{cast.agent.name}/suspend/", {"reason": f"it leaked {secret}", "days": "0"})
    hold = auth.Hold.objects.in_force().on("agent", cast.agent.pk).get()
    assert secret not in hold.reason
    assert "REDACTED" in hold.reason
