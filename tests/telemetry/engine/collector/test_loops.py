"""Loops are found where there are any: of queries, and of experiments."""

import pytest

from telemetry.engine.collector.experiments import ExperimentLoop, Experiments, step_of
from telemetry.engine.collector.facts import Key
from telemetry.engine.collector.polling import Polling, PollingLoop
from telemetry.engine.commands import classify

ROOT, SHELL, OTHER = Key(1, 1), Key(2, 1), Key(3, 1)


def polling() -> Polling:
    return Polling(apart_s=30, key=b"node")


def ask(loops: Polling, *times: float, parent: Key = SHELL, argv: tuple[str, ...] = ("squeue", "-j", "7")) -> None:
    for at in times:
        loops.query(parent, argv, ROOT, at)


def test_the_same_query_in_short_order_is_a_loop() -> None:
    loops = polling()
    ask(loops, 0, 5, 10, 16)
    assert loops.settle(40) == []  # it may go on
    assert loops.settle(47) == [PollingLoop(ROOT, 0, 16, 4, 5)]
    assert loops.settle(90) == []


def test_what_differs_or_comes_from_elsewhere_is_none() -> None:
    loops = polling()
    for number in range(5):
        ask(loops, number, argv=("squeue", "-j", str(number)))
        ask(loops, number, parent=Key(100 + number, 1))
    ask(loops, 0, 5)
    assert loops.settle(100) == []


def test_queries_far_apart_are_none_and_a_loop_that_begins_anew_is_another() -> None:
    loops, found = polling(), []
    for at in (0, 100, 200, 300, 310, 320):
        found += loops.settle(at)
        ask(loops, at)
    assert found == []
    found = loops.settle(351)
    assert found == [PollingLoop(ROOT, 300, 320, 3, 10)]


def test_many_places_do_not_fill_the_memory() -> None:
    loops = polling()
    for number in range(20_000):
        ask(loops, 0, parent=Key(number, 1))
    assert len(loops._open) == 10_000


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("sbatch x.sh", "submit"), ("squeue --me", "between"), ("tail -f out", "between"), ("vim a.py", "between"),
        ("nano a.py", "between"), ("sed -i s/a/b/ x", "between"), ("patch -p1", "between"), ("make", ""),
        ("ls", ""), ("git status", ""),
    ],
)  # fmt: skip
def test_a_command_is_a_step(line: str, step: str) -> None:
    assert step_of(classify(line.split())[0]) == step


def close(*steps: tuple[Key, str, float]) -> list[ExperimentLoop]:
    experiments = Experiments()
    found = (experiments.command(root, classify(line.split())[0], at) for root, line, at in steps)
    return [loop for loop in found if loop]


def test_submit_look_submit_is_a_loop() -> None:
    loops = close((ROOT, "sbatch a", 0), (ROOT, "tail out", 60), (ROOT, "make", 70), (ROOT, "sbatch a", 90),
                  (ROOT, "sbatch a", 95), (ROOT, "vim a", 100), (ROOT, "sbatch a", 400))  # fmt: skip
    assert [(each.submitted_s, each.again_s, each.seconds) for each in loops] == [(0, 90, 90), (95, 400, 305)]


def test_a_look_of_another_session_or_before_the_first_submission_closes_none() -> None:
    assert close((ROOT, "tail out", 0), (ROOT, "sbatch a", 1), (OTHER, "tail out", 2), (ROOT, "sbatch a", 3)) == []


def test_a_session_that_ended_is_forgotten() -> None:
    experiments = Experiments()
    for line in ("sbatch a", "tail out"):
        experiments.command(ROOT, classify(line.split())[0], 0)
    experiments.forget(ROOT)
    assert experiments.command(ROOT, classify(["sbatch", "a"])[0], 9) is None
