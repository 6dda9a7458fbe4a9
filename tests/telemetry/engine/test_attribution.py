from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from telemetry.engine import attribution
from telemetry.engine.attribution import CLOCK_SLACK_S, OBSERVED_S, Attribution, Matcher, Session, Submission, _judge


def session(
    number: int,
    start_s: int,
    end_s: int | None,
    *,
    kind: str = "agent",
    harness: str = "codex",
    user: str = "ada",
) -> Session:
    return Session(number, user, "agent" if kind == "agent" else "interactive", harness, "login1", start_s, end_s)


def attribute(
    sessions: list[Session], *, user: str, submit_s: int, submissions: Sequence[Submission] = ()
) -> Attribution:
    """Look at each session and submission, which `Matcher` does not."""
    near = [each for each in submissions if -CLOCK_SLACK_S <= submit_s - each.at_s <= OBSERVED_S]
    seen = [each for each in near if each.session.user == user]
    return _judge([each for each in sessions if each.user == user and each.covers(submit_s)], seen)


SESSIONS = st.lists(
    st.builds(
        lambda start, length, kind, harness, user: (
            start,
            None if length is None else start + length,
            kind,
            harness,
            user,
        ),
        st.integers(0, 400),
        st.none() | st.integers(0, 200),
        st.sampled_from(["agent", "interactive"]),
        st.sampled_from(["codex", "cursor"]),
        st.sampled_from(["ada", "bob"]),
    ),
    max_size=12,
).map(lambda rows: [session(i, s, e, kind=k, harness=h, user=u) for i, (s, e, k, h, u) in enumerate(rows)])

# Submissions of sessions that are known, and of some that are not loaded: at any second, often the same one.
SEEN = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 400)), max_size=8)


def submissions(sessions: list[Session], seen: list[tuple[int, int]]) -> list[Submission]:
    pool = [*sessions, session(90, 50, 60, user="bob"), session(91, 0, 9, kind="interactive", harness="")]
    return [Submission(pool[number % len(pool)], at_s) for number, at_s in seen]


def test_without_a_session_nobody_knows() -> None:
    assert attribute([], user="ada", submit_s=5) == attribution.UNKNOWN
    assert attribute([session(1, 0, 10, user="bob")], user="ada", submit_s=5).actor == "unknown"
    assert attribute([session(1, 0, 10)], user="ada", submit_s=13).actor == "unknown"


def test_one_agent_session_names_agent_and_harness() -> None:
    found = attribute([session(7, 100, 200)], user="ada", submit_s=150)
    assert (found.actor, found.harness, found.session_id) == ("agent", "codex", 7)
    assert found.method == attribution.METHOD_DECLARED
    assert found.evidence == (7,)


def test_an_open_session_covers_what_comes_after_its_start() -> None:
    assert attribute([session(1, 100, None)], user="ada", submit_s=10**9).actor == "agent"
    assert attribute([session(1, 100, None)], user="ada", submit_s=90).actor == "unknown"


def test_a_submit_within_the_clock_slack_of_an_edge_is_inside() -> None:
    assert attribute([session(1, 100, 200)], user="ada", submit_s=98).actor == "agent"
    assert attribute([session(1, 100, 200)], user="ada", submit_s=203).actor == "unknown"


def test_an_agent_beside_a_person_wins_with_less_confidence() -> None:
    both = [session(1, 0, 500, kind="interactive"), session(2, 100, 200)]
    found = attribute(both, user="ada", submit_s=150)
    assert (found.actor, found.session_id, found.method) == ("agent", 2, attribution.METHOD_DECLARED_SHARED)
    assert found.confidence < attribute(both[1:], user="ada", submit_s=150).confidence
    assert found.evidence == (1, 2)
    assert attribute(both, user="ada", submit_s=300).actor == "human"


def test_of_several_agents_the_last_to_start_answers_and_doubtful_harnesses_stay_unnamed() -> None:
    same = attribute([session(1, 0, 500), session(2, 100, 200)], user="ada", submit_s=150)
    assert (same.session_id, same.harness, same.method) == (2, "codex", attribution.METHOD_DECLARED_SEVERAL)
    mixed = attribute([session(1, 0, 500), session(2, 100, 200, harness="cursor")], user="ada", submit_s=150)
    assert (mixed.actor, mixed.session_id, mixed.harness) == ("agent", 2, "")


@given(SESSIONS, st.randoms(use_true_random=False), st.integers(-5, 700))
def test_the_order_of_sessions_does_not_matter(sessions: list[Session], rng: object, submit_s: int) -> None:
    shuffled = list(sessions)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert attribute(shuffled, user="ada", submit_s=submit_s) == attribute(sessions, user="ada", submit_s=submit_s)


@given(SESSIONS, st.integers(-5, 700))
def test_an_unrelated_session_changes_nothing(sessions: list[Session], submit_s: int) -> None:
    before = attribute(sessions, user="ada", submit_s=submit_s)
    unrelated = [session(98, 0, None, user="eve"), session(99, submit_s + 10, None)]
    assert attribute([*sessions, *unrelated], user="ada", submit_s=submit_s) == before


def test_a_submission_that_was_seen_names_its_session_whatever_else_is_open() -> None:
    outer, inner = session(1, 0, None, harness="cursor"), session(2, 100, None)
    found = attribute([outer, inner], user="ada", submit_s=151, submissions=[Submission(outer, 150)])
    assert (found.actor, found.harness, found.session_id, found.method) == ("agent", "cursor", 1, "observed")
    assert found.evidence == (1, 2)
    window_alone = attribute([outer], user="ada", submit_s=151)
    assert found.confidence > window_alone.confidence
    shell = session(3, 0, None, kind="interactive", harness="")
    assert attribute([outer], user="ada", submit_s=151, submissions=[Submission(shell, 150)]).actor == "human"


def test_a_submission_explains_jobs_of_the_seconds_after_it_and_of_its_user_alone() -> None:
    seen = [Submission(session(1, 0, 151), 150)]
    for submit_s, method in ((147, "none"), (148, "observed"), (155, "observed"), (156, "none")):
        assert attribute([], user="ada", submit_s=submit_s, submissions=seen).method == method
    assert attribute([], user="bob", submit_s=150, submissions=seen).actor == "unknown"


def test_of_submissions_under_several_sessions_the_last_one_answers_less_sure() -> None:
    seen = [Submission(session(1, 0, None), 150), Submission(session(2, 0, None, harness="cursor"), 152)]
    found = attribute([], user="ada", submit_s=153, submissions=seen)
    assert (found.session_id, found.harness, found.method) == (2, "cursor", attribution.METHOD_OBSERVED_SEVERAL)
    assert found.confidence < attribution.CONFIDENCE[attribution.METHOD_OBSERVED]
    assert attribute([], user="ada", submit_s=149, submissions=seen).session_id == 1


@given(SESSIONS, SEEN, st.integers(-5, 700), st.sampled_from(["ada", "bob", "eve"]))
def test_the_index_answers_like_the_plain_search(
    sessions: list[Session], seen: list[tuple[int, int]], submit_s: int, user: str
) -> None:
    started = submissions(sessions, seen)
    expected = attribute(sessions, user=user, submit_s=submit_s, submissions=started)
    assert Matcher(sessions, started).attribute(user=user, submit_s=submit_s) == expected


@given(SESSIONS, SEEN, st.integers(-5, 700), st.sampled_from(["ada", "bob", "eve"]))
def test_the_last_span_at_or_before_a_submit_answers_like_the_plain_search(
    sessions: list[Session], seen: list[tuple[int, int]], submit_s: int, user: str
) -> None:
    started = submissions(sessions, seen)
    spans = Matcher(sessions, started).spans()
    before = [span for span in spans if span.user == user and span.first_s <= submit_s]
    found = before[-1].found if before else attribution.UNKNOWN
    assert found == attribute(sessions, user=user, submit_s=submit_s, submissions=started)
    assert before == sorted(before, key=lambda span: span.first_s)
