"""Recording keeps a lesson where its author may, without secrets, once."""

import pytest

from memory import services as memory_services
from memory.models import Lesson, LessonToken
from memory.services.recording import RECORDED_PER_HOUR
from portal.core.errors import Invalid, NotAllowed, TooMany
from portal.core.models import AuditEvent, LiveEvent
from principals.actors import SYSTEM_ACTOR
from tests import factories
from tests.conftest import Cast
from tests.memory.lessons import OOM, agent_actor, content, recorded


def test_a_person_records_in_their_project(cast: Cast) -> None:
    lesson = recorded(cast.colleague, lab=cast.lab)
    assert (lesson.scope, lesson.status, lesson.owner, lesson.lab) == ("project", "active", cast.colleague, cast.lab)
    assert (lesson.error_text, lesson.source, lesson.lineage) == (OOM, "user", lesson.public_id)
    assert AuditEvent.objects.filter(verb="lesson.record", object_id=lesson.public_id).count() == 1
    assert LiveEvent.objects.get(name="lesson.recorded").topics == [f"user:{cast.colleague.pk}"]


def test_secrets_are_never_stored(cast: Cast) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
    lesson = recorded(
        cast.colleague, error_text=f"fatal: https://{secret}@github.com denied", fix=f"export GH_TOKEN={secret}"
    )
    row = Lesson.objects.values().get(pk=lesson.pk)
    assert secret not in str(row)
    assert "[REDACTED" in row["error_text"]
    assert "[REDACTED" in row["fix"]
    assert secret not in str(list(AuditEvent.objects.values("payload"))) + str(
        list(LiveEvent.objects.values("payload"))
    )


def test_an_agent_records_for_its_owner_in_its_lab(cast: Cast) -> None:
    lesson = recorded(agent_actor(cast.agent))
    assert (lesson.scope, lesson.owner, lesson.lab) == ("project", cast.colleague, cast.lab)
    assert (lesson.source, lesson.author_kind, lesson.author_agent) == ("agent", "agent", cast.agent)


@pytest.mark.parametrize("source", ["scheduler", "operator", "vendor_doc", "user"])
def test_an_agent_claims_no_better_source_than_its_word(cast: Cast, source: str) -> None:
    with pytest.raises(Invalid) as caught:
        recorded(agent_actor(cast.agent), source=source)
    assert caught.value.code == "source_not_allowed"


def test_an_agents_lesson_for_the_lab_waits_beside_its_own(cast: Cast) -> None:
    done = memory_services.record_lesson(actor=agent_actor(cast.agent), content=content(), scope="lab")
    assert done.lesson.scope == "project"
    assert done.proposal is not None
    assert (done.proposal.scope, done.proposal.status, done.proposal.lab) == ("lab", "draft", cast.lab)
    again = memory_services.record_lesson(actor=agent_actor(cast.agent), content=content(), scope="lab")
    assert (again.created, again.proposal) == (False, done.proposal)


def test_a_pi_records_for_the_lab_at_once(cast: Cast) -> None:
    assert recorded(cast.pi, scope="lab", lab=cast.lab).status == "active"


def test_a_members_lesson_for_the_lab_waits(cast: Cast) -> None:
    done = memory_services.record_lesson(
        actor=factories.actor_of(cast.colleague), content=content(), scope="lab", lab=cast.lab
    )
    assert done.lesson.scope == "project"
    assert done.proposal is not None
    assert done.proposal.status == "draft"


@pytest.mark.parametrize("who", ["pi", "infosec", "auditor", "colleague"])
def test_only_staff_record_for_a_cluster(cast: Cast, who: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        recorded(getattr(cast, who), scope="cluster", cluster=cast.cluster)
    assert caught.value.remedy
    assert recorded(cast.staff, scope="cluster", cluster=cast.cluster, source="operator").status == "active"


def test_nobody_records_for_a_lab_they_are_not_of(cast: Cast) -> None:
    for scope in ("project", "lab"):
        with pytest.raises(NotAllowed):
            recorded(cast.outsider, scope=scope, lab=cast.lab)


def test_the_same_again_is_the_lesson_that_is_known(cast: Cast) -> None:
    first = recorded(cast.pi, scope="lab", lab=cast.lab)
    second = recorded(cast.pi, scope="lab", lab=cast.lab, cause="the  matrix is held TWICE.")
    third = recorded(cast.manager, scope="lab", lab=cast.lab)
    assert first == second == third
    assert Lesson.objects.count() == 1
    assert sorted(first.evidence.values_list("polarity", flat=True)) == ["confirms", "origin"]


def test_two_causes_of_one_error_are_two_lessons(cast: Cast) -> None:
    one = recorded(cast.pi)
    other = recorded(cast.pi, cause="A neighbour on the node leaks.")
    assert one != other
    assert one.signature == other.signature


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"error_text": " \n"}, "error_text"),
        ({"cause": ""}, "cause"),
        ({"fix": "\x00"}, ""),
        ({"error_text": "x" * 8001}, "error_text"),
        ({"fix": "x" * 4001}, "fix"),
        ({"conditions": ("gpu",)}, "conditions"),
        ({"job_key": "rm -rf /"}, "job_key"),
        ({"source": "oracle"}, "source"),
    ],
)
def test_bad_input_names_its_field_and_keeps_nothing(cast: Cast, changes: dict[str, object], field: str) -> None:
    if not field:  # a control character alone becomes the replacement character: kept as text, shown as text
        assert recorded(cast.pi, **changes).fix == "\ufffd"
        return
    with pytest.raises(Invalid) as caught:
        recorded(cast.pi, **changes)
    assert caught.value.extra["field"] == field
    assert not Lesson.objects.exists()


def test_unknown_scope_and_missing_place_are_refused(cast: Cast) -> None:
    for kwargs in ({"scope": "world"}, {"scope": "lab"}):
        with pytest.raises(Invalid):
            recorded(cast.pi, **kwargs)
    with pytest.raises(Invalid):
        recorded(cast.staff, scope="cluster")
    with pytest.raises(Invalid):
        recorded(SYSTEM_ACTOR)


def test_the_system_imports_for_an_owner(cast: Cast) -> None:
    lesson = recorded(SYSTEM_ACTOR, owner=cast.colleague, lab=cast.lab)
    assert (lesson.owner, lesson.source) == (cast.colleague, "imported")


def test_a_flood_is_stopped(cast: Cast, standing_clock: None) -> None:
    for number in range(RECORDED_PER_HOUR):
        recorded(cast.pi, cause=f"cause {number}")
    with pytest.raises(TooMany):
        recorded(agent_actor(factories.make_agent(cast.lab, cast.pi)), cause="one more, by an agent of the same person")


def test_a_large_text_makes_a_bounded_index(cast: Cast) -> None:
    words = " ".join("w" + "".join(chr(97 + int(digit)) for digit in str(number)) for number in range(1000, 2100))
    lesson = recorded(cast.pi, error_text=words[:8000])
    assert LessonToken.objects.filter(lesson=lesson).count() == 500
