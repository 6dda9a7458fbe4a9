"""A wider scope is a new row, approved by those who answer for it, without the names of those it comes from."""

import pytest

from memory import selectors
from memory import services as memory_services
from memory.models import Lesson, LessonToken
from portal.core.errors import Conflict, Invalid, NotAllowed
from portal.core.models import AuditEvent, LiveEvent
from tests import factories
from tests.conftest import Cast
from tests.memory.lessons import agent_actor, recorded

ERROR = (
    "colleague@login03: /home/colleague/secret-plan/run.py: slurmstepd: error: Detected 1 oom_kill event\n"
    "mail colleague@uni.example"
)


def _proposed(cast: Cast, **changes: object) -> Lesson:
    lesson = recorded(cast.colleague, lab=cast.lab, **changes)
    return memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson)


def _lab_lesson(cast: Cast, **changes: object) -> Lesson:
    return memory_services.approve_lesson(actor=factories.actor_of(cast.pi), lesson=_proposed(cast, **changes))


@pytest.mark.parametrize("who", ["pi", "manager"])
def test_pi_or_manager_put_it_in_force(cast: Cast, who: str) -> None:
    proposal = _proposed(cast)
    assert not LessonToken.objects.filter(lesson=proposal).exists()
    actor = factories.actor_of(getattr(cast, who))
    assert list(selectors.lessons_to_approve(actor)) == [proposal]
    memory_services.approve_lesson(actor=actor, lesson=proposal)
    proposal.refresh_from_db()
    assert (proposal.status, proposal.decided_by) == ("active", getattr(cast, who))
    assert LessonToken.objects.filter(lesson=proposal).exists()
    assert not selectors.lessons_to_approve(actor).exists()
    assert AuditEvent.objects.filter(verb="lesson.approve", lab_id=cast.lab.pk).count() == 1
    assert LiveEvent.objects.filter(name="lesson.changed").count() == 1


@pytest.mark.parametrize("who", ["colleague", "outsider", "staff", "infosec", "auditor"])
def test_nobody_else_decides_for_a_lab(cast: Cast, who: str) -> None:
    proposal = _proposed(cast)
    actor = factories.actor_of(getattr(cast, who))
    assert not selectors.lessons_to_approve(actor).exists()
    with pytest.raises(NotAllowed):
        memory_services.approve_lesson(actor=actor, lesson=proposal)
    with pytest.raises(NotAllowed):
        memory_services.reject_lesson(actor=actor, lesson=proposal, reason="no")


def test_an_agent_decides_nothing(cast: Cast) -> None:
    own = factories.make_agent(cast.lab, cast.pi)
    for verb in (memory_services.approve_lesson,):
        with pytest.raises(NotAllowed):
            verb(actor=agent_actor(own), lesson=_proposed(cast))


def test_the_original_stays_and_names_are_taken_out(cast: Cast) -> None:
    cause = "colleague's script in /home/colleague/x doubles the matrix; ask manager"
    lesson = _lab_lesson(cast, error_text=ERROR, cause=cause)
    origin = lesson.derived_from
    assert origin is not None
    assert origin.cause == cause
    kept = " ".join([lesson.error_text, lesson.normalised, lesson.kernel, lesson.cause, lesson.fix])
    for name in ("colleague", "manager", "uni.example", "secret-plan", "login03"):
        assert name not in kept
    assert lesson.signature == origin.signature


def test_a_cluster_lesson_holds_no_place_of_the_lab(cast: Cast) -> None:
    lab_lesson = _lab_lesson(
        cast, fix="Edit /scratch/okafor/input/big.toml and /etc/security/limits.conf; charge okafor_lab.",
        conditions=("account == okafor_lab", "gpu_arch == sm_120"),
    )  # fmt: skip
    pi = factories.actor_of(cast.pi)
    proposal = memory_services.propose_lesson(actor=pi, lesson=lab_lesson, cluster=cast.cluster)
    assert proposal.status == "draft"
    assert proposal.fix == "Edit <dir>/big.toml and /etc/security/limits.conf; charge <lab>."
    assert proposal.conditions == [{"key": "gpu_arch", "op": "==", "value": "sm_120"}]
    assert proposal.lab is None
    staff = factories.actor_of(cast.staff)
    assert list(selectors.lessons_to_approve(staff)) == [proposal]
    with pytest.raises(NotAllowed):
        memory_services.approve_lesson(actor=pi, lesson=proposal)
    assert memory_services.approve_lesson(actor=staff, lesson=proposal).status == "active"


def test_members_do_not_propose_for_a_cluster(cast: Cast) -> None:
    lesson = _lab_lesson(cast)
    with pytest.raises(NotAllowed):
        memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=lesson, cluster=cast.cluster)


def test_a_projects_lesson_is_proposed_by_its_owner_alone(cast: Cast) -> None:
    lesson = recorded(cast.colleague, lab=cast.lab)
    for who in (cast.pi, cast.outsider, cast.staff):
        with pytest.raises(NotAllowed):
            memory_services.propose_lesson(actor=factories.actor_of(who), lesson=lesson)
    without_lab = recorded(cast.colleague)
    with pytest.raises(Invalid):
        memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=without_lab, lab=cast.other_lab)


def test_the_reviewers_wording_counts(cast: Cast) -> None:
    proposal = _proposed(cast)
    actor = factories.actor_of(cast.pi)
    memory_services.approve_lesson(actor=actor, lesson=proposal, cause="colleague forgot --mem", fix="Ask for 64 GB.")
    proposal.refresh_from_db()
    assert (proposal.cause, proposal.fix) == ("<user> forgot --mem", "Ask for 64 GB.")
    with pytest.raises(Invalid):
        memory_services.approve_lesson(actor=actor, lesson=_proposed(cast, cause="other"), cause=" ")


def test_a_second_decision_is_refused(cast: Cast) -> None:
    proposal = _proposed(cast)
    stale = Lesson.objects.get(pk=proposal.pk)
    actor = factories.actor_of(cast.pi)
    memory_services.reject_lesson(actor=actor, lesson=proposal, reason="Not ours.")
    with pytest.raises(Conflict):
        memory_services.approve_lesson(actor=actor, lesson=stale, cause="changed")
    stale.refresh_from_db()
    assert (stale.status, stale.status_reason) == ("invalid", "Not ours.")
    assert stale.cause != "changed"


def test_it_is_proposed_once(cast: Cast) -> None:
    proposal = _proposed(cast)
    assert proposal.derived_from is not None
    with pytest.raises(Conflict):
        memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=proposal.derived_from)


def test_a_new_approval_supersedes_the_row_before(cast: Cast) -> None:
    first = _lab_lesson(cast)
    assert first.derived_from is not None
    again = memory_services.propose_lesson(actor=factories.actor_of(cast.colleague), lesson=first.derived_from)
    memory_services.approve_lesson(actor=factories.actor_of(cast.pi), lesson=again, fix="Ask for 128 GB.")
    first.refresh_from_db()
    assert first.status == "superseded"
    assert not LessonToken.objects.filter(lesson=first).exists()


def test_a_scope_knows_the_same_once(cast: Cast) -> None:
    recorded(cast.pi, scope="lab", lab=cast.lab)
    proposal = _proposed(cast)
    with pytest.raises(Conflict) as caught:
        memory_services.approve_lesson(actor=factories.actor_of(cast.pi), lesson=proposal)
    assert caught.value.code == "lesson_known"
    proposal.refresh_from_db()
    assert proposal.status == "draft"
