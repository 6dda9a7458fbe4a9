"""Who reads which lesson: one matrix for lists, look-ups, details and exports, held with canary words."""

import json

import pytest

from memory import selectors
from memory import services as memory_services
from memory.models import Lesson
from memory.selectors import LessonFilter
from principals.actors import Actor
from tests import factories
from tests.conftest import Api, Cast, sign_in
from tests.memory.lessons import OOM, agent_actor, recorded

PEOPLE = ("pi", "manager", "colleague", "outsider", "staff", "infosec", "auditor")
# which lesson → who reads it while it is in force
READERS = {
    "project": {"colleague", "agent"},
    "project_without_lab": {"colleague", "agent"},
    "lab": {"pi", "manager", "colleague", "agent"},
    "cluster": {*PEOPLE, "agent", "foreign_agent"},
    "foreign_project": {"outsider", "foreign_agent"},
    "foreign_lab": {"outsider", "foreign_agent"},
}


@pytest.fixture
def world(cast: Cast) -> dict[str, Lesson]:
    """A lesson in every scope, each with a canary word of its own in every text."""

    def texts(name: str) -> dict[str, str]:
        word = f"canary{name.replace('_', '')}"
        return {"error_text": f"{OOM}\n{word}", "cause": word, "fix": word, "check_words": word}

    return {
        "project": recorded(cast.colleague, lab=cast.lab, **texts("project")),
        "project_without_lab": recorded(cast.colleague, **texts("project_without_lab")),
        "lab": recorded(cast.pi, scope="lab", lab=cast.lab, **texts("lab")),
        "cluster": recorded(cast.staff, scope="cluster", cluster=cast.cluster, **texts("cluster")),
        "foreign_project": recorded(cast.outsider, lab=cast.other_lab, **texts("foreign_project")),
        "foreign_lab": recorded(cast.outsider, scope="lab", lab=cast.other_lab, **texts("foreign_lab")),
    }


def _actors(cast: Cast) -> dict[str, Actor]:
    people = {name: factories.actor_of(getattr(cast, name)) for name in PEOPLE}
    return people | {"agent": agent_actor(cast.agent), "foreign_agent": agent_actor(cast.foreign_agent)}


def test_lists_and_look_ups_keep_to_the_matrix(cast: Cast, world: dict[str, Lesson]) -> None:
    for role, actor in _actors(cast).items():
        allowed = {name for name, readers in READERS.items() if role in readers}
        listed = set(selectors.lessons(actor, LessonFilter(status="all")))
        assert listed == {world[name] for name in allowed}, role
        for name, lesson in world.items():
            found = {each.lesson for each in selectors.look_up(actor, f"{OOM}\n{lesson.cause}")}
            assert found <= listed, role
            if name not in allowed:
                assert lesson not in found, (role, name)


@pytest.mark.parametrize("role", PEOPLE)
def test_no_page_or_export_shows_another_labs_words(cast: Cast, world: dict[str, Lesson], role: str) -> None:
    client = sign_in(getattr(cast, role))
    hidden = [world[name].cause for name, readers in READERS.items() if role not in readers]
    for query in (
        {"q": OOM},
        {"status": "all"},
        {"status": "all", "format": "json"},
        {"status": "all", "format": "csv"},
    ):
        text = client.get("/lessons/", query).content.decode()
        assert not [word for word in hidden if word in text], query
    for name, lesson in world.items():
        status = client.get(lesson.get_absolute_url()).status_code
        assert status == (200 if role in READERS[name] else 404), name


@pytest.mark.parametrize("role", ["agent", "foreign_agent"])
def test_an_agent_reads_no_other_labs_words_and_no_names(cast: Cast, world: dict[str, Lesson], role: str) -> None:
    api = Api(factories.make_token(getattr(cast, role), "lessons:read"))
    hidden = [world[name].cause for name, readers in READERS.items() if role not in readers]
    names = [getattr(cast, name).username for name in ("pi", "manager", "colleague", "outsider", "staff")]
    answers = [api.get("/lessons", text=f"{OOM}\n{lesson.cause}") for lesson in world.values()]
    answers += [api.post("/lessons/look-up", {"text": OOM})]
    answers += [api.get(f"/lessons/{world[name].public_id}") for name, readers in READERS.items() if role in readers]
    for answer in answers:
        assert answer.status_code == 200
        text = answer.content.decode()
        assert not [word for word in hidden if word in text]
        assert not [name for name in names if json.dumps(name) in text or f" {name} " in text]
    for name, readers in READERS.items():
        if role not in readers:
            assert api.get(f"/lessons/{world[name].public_id}").status_code == 404


def test_drafts_are_read_by_those_who_wrote_or_decide(cast: Cast) -> None:
    colleague, pi = factories.actor_of(cast.colleague), factories.actor_of(cast.pi)
    own = recorded(cast.colleague, lab=cast.lab)
    draft = memory_services.propose_lesson(actor=colleague, lesson=own)
    member = factories.make_user("member2")
    cast.lab.memberships.create(user=member)
    readers = {"pi", "manager", "colleague"}
    for role, actor in (_actors(cast) | {"member2": factories.actor_of(member)}).items():
        assert Lesson.objects.visible_to(actor).filter(pk=draft.pk).exists() == (role in readers), role
    memory_services.reject_lesson(actor=pi, lesson=draft, reason="Not ours.")
    assert not Lesson.objects.visible_to(factories.actor_of(member)).filter(pk=draft.pk).exists()


def test_a_cluster_draft_is_read_by_the_office_and_its_source(cast: Cast) -> None:
    pi = factories.actor_of(cast.pi)
    lesson = recorded(cast.pi, scope="lab", lab=cast.lab)
    draft = memory_services.propose_lesson(actor=pi, lesson=lesson, cluster=cast.cluster)
    readers = {"pi", "manager", "staff", "infosec", "auditor"}
    for role, actor in _actors(cast).items():
        assert Lesson.objects.visible_to(actor).filter(pk=draft.pk).exists() == (role in readers), role


def test_who_leaves_a_lab_leaves_its_lessons(cast: Cast, world: dict[str, Lesson]) -> None:
    cast.lab.memberships.filter(user=cast.pi).delete()
    assert not Lesson.objects.visible_to(factories.actor_of(cast.pi)).filter(pk=world["lab"].pk).exists()


def test_an_owners_agent_of_another_lab_reads_nothing_of_this_one(cast: Cast, world: dict[str, Lesson]) -> None:
    cast.other_lab.memberships.create(user=cast.colleague)
    elsewhere = agent_actor(factories.make_agent(cast.other_lab, cast.colleague))
    read = set(Lesson.objects.visible_to(elsewhere))
    assert read == {world["project_without_lab"], world["cluster"], world["foreign_lab"]}
    assert world["project"] not in {each.lesson for each in selectors.look_up(elsewhere, f"{OOM}\ncanaryproject")}
