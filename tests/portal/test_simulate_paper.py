"""The generator that plants the published measurement: drawn from a seed, near the paper, and on its own."""

import ast
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from portal.demo.paper import accounting
from portal.demo.paper.accounting import Accounting
from portal.demo.paper.activity import bodies
from portal.demo.paper.activity.bodies import Bodies
from portal.demo.paper.drawing import Lot, Spread, mean_of, sizes_with_mean
from portal.demo.paper.jobs import Workload
from portal.demo.paper.levels import Levels
from portal.demo.paper.plan import Plan, make_plan
from portal.demo.paper.published import LOOPS, RUN_TIMES
from principals.models import Cluster
from telemetry.engine.activity import MEASURES

ROOT = Path(__file__).resolve().parents[2]
ZONE = "America/New_York"
SHARE = 0.004
# What a generator may call is where data come in, with the forms that they have there.
MAY_USE = {
    "telemetry": {"services"}, "telemetry.engine.slurm.statistics": {"Asked"},
    "telemetry.api.activity": {"MOST_BYTES", "batch_of"}, "telemetry.schemas": {"ActivityIn"},
}  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(seed=7, share=SHARE, zone=ZONE)


def lines_of(plan: Plan, acts: int) -> str:
    rng = Random(f"{plan.seed}:jobs")
    workload, writer = Workload(rng, plan.people, plan.jobs, Levels(rng, plan.by_hand)), Accounting(plan.people)
    text = accounting.HEADER
    for act in plan.acts[:acts]:
        batch = workload.decide(act)
        text += "".join(writer.lines(batch, workload.runs(batch), writer.take_ids(act.size), "1:0"))
    return text


# --- on its own ------------------------------------------------------------------------------------------
def imports_of(path: Path) -> list[tuple[str, str]]:
    """Return what a file imports: (module, name), the name "" of a module as such."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", each.name) for each in node.names]
        elif isinstance(node, ast.Import):
            found += [(each.name, "") for each in node.names]
    return found


def file_of(module: str) -> Path | None:
    path = ROOT / Path(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


def test_it_shares_no_code_with_what_measures() -> None:
    waiting = [path for path in (ROOT / "portal/demo/paper").rglob("*.py")]
    seen, foreign = set[Path](), set[tuple[str, str, str]]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for module, name in imports_of(path):
            if module.startswith("portal.demo"):
                waiting += [each for each in (file_of(module), file_of(f"{module}.{name}")) if each]
            elif module.startswith(("telemetry", "portal.reports", "portal.dashboard")):
                foreign |= {(path.name, module, name)} if name not in MAY_USE.get(module, ()) else set()
    assert foreign == set()
    assert {"load.py", "bodies.py", "sampling.py"} <= {path.name for path in seen}


# --- drawn from a seed -----------------------------------------------------------------------------------
def test_the_same_seed_plants_the_same(plan: Plan) -> None:
    same, other = make_plan(seed=7, share=SHARE, zone=ZONE), make_plan(seed=8, share=SHARE, zone=ZONE)
    assert (plan.spans, plan.acts) == (same.spans, same.acts)
    assert plan.acts != other.acts
    assert lines_of(plan, 400) == lines_of(same, 400) != lines_of(other, 400)
    sent = [json.dumps(next(iter(Bodies(each, "cannon")))) for each in (plan, same, other)]
    assert sent[0] == sent[1] != sent[2]


def test_acts_are_as_many_jobs_as_asked_for_and_follow_each_other(plan: Plan) -> None:
    assert sum(act.size for act in plan.acts) == plan.jobs == round(7_088_836 * SHARE)
    by_person = defaultdict(list)
    for act in plan.acts:
        assert plan.start_s <= act.at_s < plan.end_s
        by_person[act.person].append(act)
    assert by_person.keys() == plan.people.keys()
    for acts in by_person.values():
        assert [act.until_s for act in acts] == [*(act.at_s for act in acts[1:]), None]
        for act, follower in pairwise(acts):
            assert not act.goes_on or (act.actor, act.span) == (follower.actor, follower.span)


def test_nobody_submits_at_the_edge_of_a_session(plan: Plan) -> None:
    edges = defaultdict(list)
    for span in plan.spans:
        edges[span.person] += [edge for edge in (span.start_s, span.end_s) if edge is not None]
    for act in plan.acts:
        assert all(abs(act.at_s - edge) > 60 for edge in edges[act.person])


@given(seed=st.integers(0, 2**32))
def test_a_lot_meets_its_weights_to_the_size_of_a_draw(seed: int) -> None:
    sizes = Random(seed).choices(range(1, 41), k=400)
    weights = {"often": 0.7, "seldom": 0.25, "rarely": 0.05}
    lot, drawn = Lot(weights, Random(seed)), Counter[str]()
    for size in sizes:
        drawn[lot.draw(size)] += size
    for name, weight in weights.items():
        assert abs(drawn[name] - weight * sum(sizes)) <= 2 * max(sizes)


@pytest.mark.parametrize("actor", RUN_TIMES)
def test_a_spread_follows_its_curve_closer_than_chance(actor: str) -> None:
    spread = Spread(RUN_TIMES[actor], Random(1))
    drawn = [spread.draw() for _ in range(4000)]
    for seconds, share in RUN_TIMES[actor].points[1:-1]:
        assert sum(value <= seconds for value in drawn) / len(drawn) == pytest.approx(share, abs=0.002)
    least = Spread(LOOPS[actor], Random(1)).draw_below(3600)
    assert least is not None and least <= 3600


def test_what_does_not_fit_is_kept_for_others() -> None:
    spread, whole = Spread(RUN_TIMES["agent"], Random(2)), Spread(RUN_TIMES["agent"], Random(2))
    taken = [value for _ in range(400) if (value := spread.draw_below(60)) is not None]
    taken += [spread.draw() for _ in range(12)]
    drawn = Counter(whole.draw() for _ in range(2000))
    assert max(taken[:-12]) <= 60 < max(taken[-12:])
    assert not Counter(taken) - drawn


def test_sizes_have_the_mean_asked_for() -> None:
    weights = sizes_with_mean((1, 2, 4, 8), 2.6)
    assert sum(size * weight for size, weight in weights.items()) / sum(weights.values()) == pytest.approx(2.6)
    with pytest.raises(ValueError, match="mean of 9"):
        sizes_with_mean((1, 2, 4, 8), 9)
    assert mean_of(RUN_TIMES["human"]) > mean_of(RUN_TIMES["agent"]) > 600


# --- what collectors send --------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def sent(plan: Plan) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    told = Bodies(plan, "cannon")
    return list(told), told.books.as_json()


def instant(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text).astimezone(UTC)


def test_bodies_keep_to_what_collectors_may_send(sent: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
    known = set(MEASURES)
    for body in sent[0]:
        assert len(json.dumps(body).encode()) <= 2**20
        since, until = instant(body["from"]), instant(body["to"])
        sessions = {one["id"]: one for one in body["sessions"]}
        seen = set()
        for row in body["minutes"]:
            counts, at = row["counts"], instant(row["minute"])
            assert counts.keys() <= known and min(counts.values()) > 0
            in_category = sum(number for name, number in counts.items() if name.startswith("category:"))
            assert in_category == counts["commands"] >= max(counts.values())
            assert since <= at < until and not at.second
            assert (row["session"] == "") == (row["driver"] == "unknown")
            if row["session"]:
                kind = {"agent": "agent", "human": "interactive"}[row["driver"]]
                assert sessions[row["session"]]["kind"] == kind
            assert (row["session"], at) not in seen
            seen.add((row["session"], at))
        for part in ("submissions", "loops", "polling"):
            assert {one["session"] for one in body[part]} <= sessions.keys()
        assert all(since <= instant(one["at"]) < until for one in body["submissions"])
        assert all(since <= instant(one["again"]) < until for one in body["loops"])
        assert all(instant(one["start"]) <= instant(one["last"]) <= until for one in body["sessions"])


def test_a_busy_node_is_told_of_in_several_bodies_each_with_its_sessions(
    plan: Plan, sent: tuple[list[dict[str, Any]], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_MOST_MINUTES", 60)
    split = Bodies(plan, "cannon")
    smaller, seen = list(split), Counter[tuple[str, str, str]]()
    assert len(smaller) > len(sent[0])
    for body in smaller:
        named = {one["session"] for part in ("minutes", "submissions", "loops", "polling") for one in body[part]}
        assert named - {""} <= {one["id"] for one in body["sessions"]}
        seen.update((body["host"], row["session"], row["minute"]) for row in body["minutes"])
    assert max(seen.values()) == 1
    driven = (row for body in smaller for row in body["minutes"] if row["driver"] == "agent")
    assert split.books.as_json()["agent"]["commands"] == sum(row["counts"]["commands"] for row in driven)


def test_every_session_is_told_of_once_it_is_over(
    plan: Plan, sent: tuple[list[dict[str, Any]], dict[str, Any]]
) -> None:
    last = {(body["host"], one["id"]): one for body in sent[0] for one in body["sessions"]}
    assert len(last) == len(plan.spans)
    over = sum(span.end_s is not None for span in plan.spans)
    assert sum(one["end"] is not None for one in last.values()) == over > 0


@pytest.mark.parametrize("driver", ["agent", "human"])
def test_the_books_say_what_the_bodies_hold(
    plan: Plan, sent: tuple[list[dict[str, Any]], dict[str, Any]], driver: str
) -> None:
    told, books = sent[0], sent[1][driver]
    kind = "agent" if driver == "agent" else "interactive"
    owner = {(body["host"], one["id"]): one for body in told for one in body["sessions"] if one["kind"] == kind}
    counts, fetching = Counter[str](), set[str]()
    loops = list[float]()
    for body in told:
        for row in body["minutes"]:
            if row["driver"] == driver:
                counts.update(row["counts"])
                if any(name.startswith("fetch:") for name in row["counts"]):
                    fetching.add(owner[body["host"], row["session"]]["user"])
        for loop in body["loops"]:
            if (body["host"], loop["session"]) in owner:
                loops.append((instant(loop["again"]) - instant(loop["submitted"])).total_seconds())
    assert books["commands"] == counts["commands"] > 1000
    assert books["queries"] == counts["scheduler_query"]
    assert books["submissions"] == counts["submission"]
    assert books["destructive"]["rm_force"]["number"] == counts["rm_force"] > 0
    assert books["tree_walks_a_user"] * books["users"] == pytest.approx(counts["tree_walk"])
    assert (books["loops"]["number"], books["loops"]["median_s"]) == (len(loops), sorted(loops)[(len(loops) - 1) // 2])
    if driver == "agent":
        assert len(fetching) / books["users"] == pytest.approx(sent[1]["fetching"]["any"])


def test_commands_are_near_those_published(sent: tuple[list[dict[str, Any]], dict[str, Any]]) -> None:
    books = sent[1]
    for driver, rate, head in (("agent", 3.53, 176.2), ("human", 0.17, 4.4)):
        found = books[driver]
        assert found["commands_a_minute"] == pytest.approx(rate, rel=0.1)
        assert found["tools_for_100_jobs"]["head"] == pytest.approx(head, rel=0.15)
    agents, people = (books[driver]["a_user_by_category"] for driver in ("agent", "human"))
    assert max(people, key=people.__getitem__) == "slurm"
    assert all(agents[name] > people[name] for name in ("text", "build", "packages", "versions"))
    for name, share in (("any", 0.772), ("code", 0.581), ("web", 0.375), ("search", 0.156), ("much", 0.131)):
        assert books["fetching"][name] == pytest.approx(share, abs=0.02)


def test_loops_close_as_soon_as_published(plan: Plan) -> None:
    for actor, minutes, within in (
        ("agent", 16.3, (0.375, 0.654, 0.788, 0.913)), ("human", 30.1, (0.247, 0.5, 0.664, 0.888)),
    ):  # fmt: skip
        loops = [act.interval_s / 60 for act in plan.acts if act.goes_on and act.actor == actor]
        assert median(loops) == pytest.approx(minutes, rel=0.06)
        for limit, share in zip((10, 30, 60, 180), within, strict=True):
            assert sum(gap <= limit for gap in loops) / len(loops) == pytest.approx(share, abs=0.025)


def test_sessions_are_as_old_as_published(plan: Plan) -> None:
    for kind, days in (("agent", 7.5), ("interactive", 3.6)):
        ages = [span.age_s(plan.end_s) / 86_400 for span in plan.spans if span.kind == kind]
        assert median(ages) == pytest.approx(days, rel=0.15)


# --- refused ---------------------------------------------------------------------------------------------
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "said"),
    [({"share": 2.0}, "0.003 to 1"), ({"share": 0.001}, "cannot be planted"), ({"live": True}, "leave --live out")],
)
def test_what_cannot_be_planted_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("simulate", scale="paper", **options)
    assert not Cluster.objects.exists()


@pytest.mark.django_db
def test_nothing_is_planted_beside_other_data() -> None:
    Cluster.objects.create(name="aster")
    with pytest.raises(CommandError, match="not empty"):
        call_command("simulate", scale="paper", share=0.01)
    assert Cluster.objects.count() == 1
