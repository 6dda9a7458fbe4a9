"""Staff or InfoSec admit, admit with conditions, deny and revoke; one decision counts, and each says why."""

import pytest

from policies import services as policy_services
from policies.models import ExtensionRelease
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from tests import factories
from tests.conftest import Cast, sign_in
from tests.policies import worlds


def _decide(cast: Cast, release: ExtensionRelease, decision: str, who: str = "infosec", **words: str):  # type: ignore[no-untyped-def]
    actor = factories.actor_of(getattr(cast, who))
    return policy_services.decide_extension(actor=actor, release=release, decision=decision, **words)


@pytest.mark.parametrize("who", ["staff", "infosec"])
def test_a_reviewer_admits_without_a_reason(cast: Cast, who: str) -> None:
    release = worlds.make_release(cast.colleague)
    _decide(cast, release, "admitted", who)
    release.refresh_from_db()
    assert (release.state, release.decided_by) == ("admitted", getattr(cast, who))
    event = AuditEvent.objects.get(verb="extension.decide")
    assert event.payload["before"] == {"state": "queued"}  # type: ignore[index]
    assert f"user:{cast.colleague.pk}" in LiveEvent.objects.get(name="extension.decided").topics


@pytest.mark.parametrize("who", ["pi", "manager", "outsider", "auditor"])
def test_nobody_else_decides(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed):
        _decide(cast, worlds.make_release(cast.colleague), "admitted", who)


def test_nobody_reviews_what_they_submitted(cast: Cast) -> None:
    with pytest.raises(NotAllowed) as caught:
        _decide(cast, worlds.make_release(cast.infosec), "admitted")
    assert caught.value.code == "own_submission"


def test_an_agent_never_decides(cast: Cast) -> None:
    of_staff = factories.make_agent(cast.lab, cast.staff)
    cast.lab.memberships.create(user=cast.staff, role="member")
    with pytest.raises(NotAllowed):
        policy_services.decide_extension(
            actor=worlds.agent_actor(of_staff), release=worlds.make_release(cast.colleague), decision="admitted"
        )


@pytest.mark.parametrize(
    ("decision", "words", "code"),
    [
        ("denied", {}, "reason_missing"),
        ("denied", {"reason": "  "}, "reason_missing"),
        ("admitted_with_conditions", {"reason": "fine"}, "conditions_missing"),
        ("admitted_with_conditions", {"conditions": "in the sandbox"}, "reason_missing"),
        ("revoked", {"reason": "no"}, "decision_unknown"),
        ("blessed", {"reason": "no"}, "decision_unknown"),
    ],
)
def test_a_decision_without_its_words_is_refused(
    cast: Cast, decision: str, words: dict[str, str], code: str
) -> None:  # fmt: skip
    release = worlds.make_release(cast.colleague)
    with pytest.raises(Invalid) as caught:
        _decide(cast, release, decision, **words)
    assert caught.value.code == code
    release.refresh_from_db()
    assert release.state == "queued"


def test_the_second_of_two_reviewers_is_told_what_the_first_decided(cast: Cast) -> None:
    release = worlds.make_release(cast.colleague)
    seen_by_second = ExtensionRelease.objects.get(pk=release.pk)
    _decide(cast, release, "denied", reason="It reads keys.")
    with pytest.raises(Conflict, match="denied"):
        _decide(cast, seen_by_second, "admitted", "staff")
    release.refresh_from_db()
    assert release.state == "denied"


def test_an_admission_is_revoked_with_a_reason_and_told(cast: Cast) -> None:
    release = worlds.make_release(cast.colleague)
    _decide(cast, release, "admitted_with_conditions", reason="Small.", conditions="Only in the sandbox.")
    with pytest.raises(Invalid):
        policy_services.revoke_extension(actor=factories.actor_of(cast.infosec), release=release, reason="")
    policy_services.revoke_extension(actor=factories.actor_of(cast.infosec), release=release, reason="It phones home.")
    release.refresh_from_db()
    assert (release.state, release.reason) == ("revoked", "It phones home.")
    assert LiveEvent.objects.get(name="extension.revoked").payload["digest"] == worlds.DIGEST


def test_a_queued_release_is_not_revoked_and_a_denied_one_not_revived(cast: Cast) -> None:
    actor = factories.actor_of(cast.infosec)
    with pytest.raises(Conflict):
        policy_services.revoke_extension(actor=actor, release=worlds.make_release(cast.colleague), reason="no")
    denied = worlds.make_release(cast.colleague, version="2.0", state="denied")
    with pytest.raises(Conflict):
        policy_services.decide_extension(actor=actor, release=denied, decision="admitted")


def test_the_page_decides_and_keeps_the_words_of_a_refused_decision(cast: Cast) -> None:
    release = worlds.make_release(cast.colleague)
    browser = sign_in(cast.infosec)
    url = f"/extensions/{release.pk}/decide/"
    refused = browser.post(url, {"decision": "admitted_with_conditions", "reason": "Small tool."})
    assert refused.status_code == 422
    assert "Small tool." in refused.content.decode()
    assert browser.post(url, {"decision": "denied", "reason": "It reads keys."}).status_code == 302
    assert "It reads keys." in sign_in(cast.colleague).get(f"/extensions/{release.pk}/").content.decode()


def test_the_page_revokes(cast: Cast) -> None:
    release = worlds.make_release(cast.colleague)
    _decide(cast, release, "admitted")
    answer = sign_in(cast.staff).post(
        f"/extensions/{release.pk}/decide/", {"decision": "revoked", "reason": "It changed."}
    )
    assert answer.status_code == 302
    release.refresh_from_db()
    assert release.state == "revoked"
