import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.engine.match import (
    Candidate,
    How,
    LessonIndex,
    find_lessons,
    similarity,
    trigrams_of,
    words_of,
)
from memory.engine.signature import sign

LESSONS = [
    Candidate("disk", "OSError: [Errno 28] No space left on device"),
    Candidate("nccl", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)"),
    Candidate("slots", "There are not enough slots available in the system to satisfy the 2 slots"),
    Candidate("account", "sbatch: error: Batch job submission failed: Invalid account or account/partition"),
    Candidate("limit", "sbatch: error: Batch job submission failed: Requested time limit is invalid"),
]


def test_the_same_error_is_found_word_for_word():
    (match, *_) = find_lessons("IOError: [Errno 28] No space left on device", LESSONS)
    assert (match.key, match.score, match.how) == ("disk", 1.0, How.EXACT)
    assert match.why == "The same error, word for word."


def test_a_like_error_says_how_alike_and_which_rare_words_are_shared():
    (match, *_) = find_lessons("touch: cannot touch 'x': No space left on device (quota)", LESSONS)
    assert match.key == "disk"
    assert match.how is How.SIMILAR
    assert match.why.startswith(f"{match.score:.0%} alike; both mention ")
    assert "space" in match.why


@pytest.mark.parametrize("text", ["", "RuntimeError: failed", "mesh.msh: element 7 has a negative volume"])
def test_an_unknown_error_gets_no_lesson(text):
    assert find_lessons(text, LESSONS) == []


def test_likeness_by_common_words_alone_is_not_enough():
    lessons = [Candidate("one", "the job failed with error"), Candidate("two", "job step failed with error")]
    assert find_lessons("job task failed with an error", lessons) == []


def test_at_most_three_lessons_come_back_best_first():
    lessons = [Candidate(f"k{n}", "OSError: [Errno 28] No space left on device") for n in range(5)]
    matches = find_lessons("[Errno 28] No space left on device", lessons)
    assert [match.key for match in matches] == ["k0", "k1", "k2"]


def test_equal_errors_count_once_when_rare_words_are_told():
    many = [Candidate(f"k{n}", "nvlink fabric gone") for n in range(50)] + LESSONS
    index = LessonIndex.build(many)
    assert index.kernels == 1 + len(LESSONS)
    assert index.is_rare("nvlink")


@given(st.text(max_size=60), st.text(max_size=60))
def test_likeness_is_symmetric_and_between_nothing_and_all(one, other):
    a, b = trigrams_of(one), trigrams_of(other)
    assert similarity(a, b) == similarity(b, a)
    assert 0 <= similarity(a, b) <= 1
    assert not a or similarity(a, a) == 1


@given(st.text(max_size=80), st.floats(0.1, 0.9))
def test_a_higher_threshold_never_finds_more(text, threshold):
    index = LessonIndex.build(LESSONS)
    low = {match.key for match in index.find(text, limit=9, threshold=threshold)}
    high = {match.key for match in index.find(text, limit=9, threshold=threshold + 0.1)}
    assert high <= low


def test_placeholders_are_no_evidence():
    assert words_of("<node> <n> failed") == frozenset()
    assert trigrams_of("<node>") == frozenset()


@pytest.fixture(scope="module")
def failures():
    root = Path(__file__).resolve().parents[3]
    data = Path(os.environ.get("GATEHOUSE_SHARED_DATA", root.parent / "shared" / "data"))
    path = data / "failures" / "failures-dev.jsonl"
    if not path.exists():
        pytest.skip(f"needs {path.name} of the shared data")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row | {"signature": sign(row["text"])} for row in rows]


def _index(rows):
    return LessonIndex.build(Candidate(row["id"], row["text"], row["signature"]) for row in rows)


@pytest.mark.shared_data
def test_equal_signatures_mean_one_family_on_published_failures(failures):
    groups: dict[str, list[str]] = {}
    for row in failures:
        groups.setdefault(sign(row["text"]).exact, []).append(row["signature_group"])
    assert all(len(set(families)) == 1 for families in groups.values())
    joined = sum(len(families) * (len(families) - 1) // 2 for families in groups.values())
    families = Counter(row["signature_group"] for row in failures)
    possible = sum(number * (number - 1) // 2 for number in families.values())
    print(f"exact signatures join {joined} of {possible} pairs")  # noqa: T201
    assert joined / possible >= 0.33


@pytest.mark.shared_data
def test_known_families_are_found_and_absent_ones_mostly_refused(failures):
    families = Counter(row["signature_group"] for row in failures)
    known = answered = right = accepted = 0
    for row in failures:
        family = row["signature_group"]
        absent = _index(other for other in failures if other["signature_group"] != family)
        accepted += bool(absent.find(row["text"]))
        if families[family] == 1:
            continue
        known += 1
        matches = _index(other for other in failures if other is not row).find(row["text"])
        answered += bool(matches)
        by_id = {other["id"]: other["signature_group"] for other in failures}
        right += bool(matches) and by_id[matches[0].key] == family
    print(f"answered {answered}/{known}, right {right}, absent accepted {accepted}/{len(failures)}")  # noqa: T201
    assert right / answered >= 0.97
    assert answered / known >= 0.7
    assert accepted / len(failures) <= 0.12
