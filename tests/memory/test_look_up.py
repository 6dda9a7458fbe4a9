"""A look-up finds what fits in the viewer's scopes, says why, and is silent about what it does not know."""

from datetime import timedelta

import pytest

from memory import selectors
from memory import services as memory_services
from memory.models import LessonLookup
from memory.models.lookups import LessonLookup as Row
from portal.core import clock
from tests import factories
from tests.conftest import Cast
from tests.memory.lessons import GLIBCXX, OOM, agent_actor, recorded


def test_the_same_error_of_another_job_is_found(cast: Cast) -> None:
    lesson = recorded(cast.pi, lab=cast.lab)
    text = "some output\n" + OOM.replace("48211977", "50000001")
    found = selectors.look_up(factories.actor_of(cast.pi), text)
    assert [(each.lesson, each.exact, each.score) for each in found] == [(lesson, True, 1.0)]
    assert found[0].why


def test_a_similar_error_is_found_by_a_rare_word(cast: Cast) -> None:
    lesson = recorded(cast.pi, error_text=GLIBCXX)
    text = "python: /usr/lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by numpy.so)"
    found = selectors.look_up(factories.actor_of(cast.pi), text)
    assert [each.lesson for each in found] == [lesson]


@pytest.mark.parametrize("text", ["", "   ", "error: failed", "NCCL watchdog timeout on rank 3", "x" * 70_000])
def test_it_abstains(cast: Cast, text: str) -> None:
    recorded(cast.pi)
    recorded(cast.pi, error_text=GLIBCXX)
    assert selectors.look_up(factories.actor_of(cast.pi), text) == []


def test_a_word_that_many_errors_share_makes_no_match(cast: Cast) -> None:
    for number in range(4):
        letters = "abcd"[number] * 4
        recorded(cast.pi, error_text=f"solver diverged unexpectedly near boundary {letters}", cause=letters)
    found = selectors.look_up(factories.actor_of(cast.pi), "solver diverged unexpectedly near boundary zzzz")
    assert found == []


def test_at_most_three_distinct_causes(cast: Cast) -> None:
    for number in range(5):
        recorded(cast.pi, cause=f"cause {number}")
    actor = factories.actor_of(cast.pi)
    assert len({each.lesson.cause for each in selectors.look_up(actor, OOM, limit=50)}) == 3
    assert len(selectors.look_up(actor, OOM, limit=1)) == 1


def test_of_one_lesson_in_three_scopes_the_widest_is_given_once(cast: Cast) -> None:
    pi = factories.actor_of(cast.pi)
    own = recorded(cast.pi, lab=cast.lab)
    in_lab = memory_services.propose_lesson(actor=pi, lesson=own)
    wide = memory_services.propose_lesson(actor=pi, lesson=in_lab, cluster=cast.cluster)
    assert [each.lesson for each in selectors.look_up(pi, OOM)] == [in_lab]
    memory_services.approve_lesson(actor=factories.actor_of(cast.staff), lesson=wide)
    assert [each.lesson for each in selectors.look_up(pi, OOM)] == [wide]


def test_what_others_confirmed_comes_first(cast: Cast) -> None:
    recorded(cast.pi, scope="lab", lab=cast.lab, cause="first")
    better = recorded(cast.pi, scope="lab", lab=cast.lab, cause="second")
    memory_services.confirm_lesson(actor=factories.actor_of(cast.manager), lesson=better)
    assert selectors.look_up(factories.actor_of(cast.pi), OOM)[0].lesson == better


def test_another_clusters_lessons_are_left_out_where_one_is_named(cast: Cast) -> None:
    other = factories.make_cluster("borealis")
    lesson = recorded(cast.staff, scope="cluster", cluster=cast.cluster)
    actor = factories.actor_of(cast.outsider)
    assert [each.lesson for each in selectors.look_up(actor, OOM, cluster=cast.cluster)] == [lesson]
    assert selectors.look_up(actor, OOM, cluster=other) == []


def test_a_look_up_reads_a_fixed_number_of_rows(cast: Cast, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    for number in range(30):
        recorded(cast.pi, error_text=f"{OOM}\nvariant {number}", cause=f"cause {number}")
    actor = agent_actor(factories.make_agent(cast.lab, cast.pi))
    with django_assert_max_num_queries(6):
        found = selectors.look_up(actor, OOM)
        assert [each.lesson.place for each in found]


def test_it_is_counted_without_the_text(cast: Cast) -> None:
    recorded(cast.colleague, lab=cast.lab)
    memory_services.look_up(actor=agent_actor(cast.agent), text=OOM)
    memory_services.look_up(actor=factories.actor_of(cast.outsider), text="canary-word exploded")
    rows = LessonLookup.objects.order_by("pk").values("found", "actor_kind", "signature")
    assert [(row["found"], row["actor_kind"]) for row in rows] == [(True, "agent"), (False, "user")]
    assert "canary" not in str(list(LessonLookup.objects.values()))


def test_old_look_ups_are_forgotten(cast: Cast) -> None:
    memory_services.look_up(actor=factories.actor_of(cast.pi), text=OOM)
    old = clock.now() - Row.KEPT - timedelta(days=1)
    LessonLookup.objects.create(signature="0" * 12, found=False, actor_kind="user", at=old)
    assert memory_services.prune_lookups() == 1
    assert LessonLookup.objects.count() == 1
