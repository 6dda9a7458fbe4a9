"""A session that a harness declares and a collector sees is one row, whichever comes first, whatever runs beside it."""

from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from principals.actors import SYSTEM_ACTOR
from principals.engine.pairing import Seen, rank
from principals.models import AgentSession, Cluster, SessionDeclaration
from principals.services import DeclaredSession
from security.models import Finding
from telemetry import services
from telemetry.models import ActivityMinute, ActivitySubmission, Job
from telemetry.selectors import Period, Scope
from telemetry.selectors.sessions import session_ages
from tests import factories
from tests.conftest import Cast
from tests.security.support import finding, report
from tests.telemetry.activity_batches import AGENT, BOOT, agent_session, counted, minute, record
from tests.telemetry.engine.sacct_texts import row, text
from tests.telemetry.logs import ingest

pytestmark = [pytest.mark.django_db, pytest.mark.sql]

START = minute(70)  # once, for the minute goes on while these run
SECOND = "900-100200"


def said(after_s: int = 3, **fields: Any) -> DeclaredSession:
    """The session of `seen` as its harness declares it, some seconds after its process began."""
    told = {"login": "colleague", "host": "login1", "kind": "agent", "harness": "claude-code", "campaign": "dock"}
    return DeclaredSession(**told | {"started": START + timedelta(seconds=after_s)} | fields)


def seen(**fields: Any) -> dict[str, Any]:
    """A session as a collector sees it."""
    return agent_session(**{"start": START, "last": START + timedelta(hours=1)} | fields)


def declare(cluster: Cluster, *sessions: DeclaredSession) -> list[Any]:
    return services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cluster, sessions=sessions).outcomes


def see(cluster: Cluster, *sessions: dict[str, Any], **fields: Any) -> None:
    recorded = record(cluster, sessions=list(sessions) or [seen()], **fields)
    assert not recorded.rejected


def halves(cluster: Cluster | None = None) -> list[tuple[Any, ...]]:
    """Every row as it is, its number apart."""
    rows = AgentSession.objects.order_by("started", "process", "declaration__started")
    rows = rows.filter(cluster=cluster) if cluster else rows
    return list(
        rows.values_list(
            "host", "harness", "process", "started", "ended", "last_seen", "campaign", "source", "agent__name",
            "declaration__started", "declaration__ended", "declaration__campaign", "declaration__source", "place",
        )
    )  # fmt: skip


def job(number: int, after_s: int) -> str:
    at = (START + timedelta(seconds=after_s)).strftime("%Y-%m-%dT%H:%M:%S")
    return row(JobID=str(number), JobIDRaw=str(number), User="colleague", Account="okafor_lab", State="PENDING",
               Submit=at, Eligible=at, Start="Unknown", End="Unknown", Elapsed="00:00:00")  # fmt: skip


@pytest.mark.parametrize("first", ["declared", "seen"])
def test_what_comes_first_stays_and_takes_up_the_other(cast: Cast, first: str) -> None:
    did = {"minutes": [counted()], "submissions": [{"session": AGENT, "at": minute(9)}]}
    acts = [lambda: declare(cast.cluster, said()), lambda: see(cast.cluster, seen(place="agent_host"), **did)]
    ingest(cast.cluster, text(job(1, 60)))
    for act in acts if first == "declared" else acts[::-1]:
        act()
        kept = AgentSession.objects.get().pk
    session = AgentSession.objects.get()
    assert session.pk == kept
    assert (session.started, session.process, session.campaign) == (START, f"{BOOT}/{AGENT}", "dock")
    assert session.place == "agent_host"
    assert (session.agent, session.declaration.started) == (cast.agent, START + timedelta(seconds=3))
    assert ActivityMinute.objects.get().session == ActivitySubmission.objects.get().session == session
    found = Job.objects.get()
    assert (found.session, found.actor_method, found.campaign) == (session, "declared_session", "dock")
    ages = session_ages(Scope(actor=SYSTEM_ACTOR, cluster=cast.cluster, period=Period.last_days(2)))
    assert ages["agent"].sessions == 1


@pytest.mark.parametrize("first", ["declared", "seen"])
def test_telling_either_again_changes_nothing(cast: Cast, first: str) -> None:
    acts = [lambda: declare(cast.cluster, said(), said(3000)), lambda: see(cast.cluster)]
    for act in acts if first == "declared" else acts[::-1]:
        act()
    before = halves()
    assert len(before) == 2  # what begins hours later under the same process is another session
    outcomes = declare(cast.cluster, said(), said(3000))
    see(cast.cluster)
    assert [each.outcome for each in outcomes] == ["unchanged", "unchanged"]
    assert outcomes[0].agent == cast.agent.name
    assert halves() == before


@pytest.mark.parametrize(
    "other", [{"host": "login2"}, {"login": "pi"}, {"harness": "codex"}, {"kind": "interactive", "harness": ""},
              {"started": START - timedelta(seconds=61)}, {"started": START + timedelta(seconds=601)}],
)  # fmt: skip
@pytest.mark.parametrize("first", ["declared", "seen"])
def test_what_differs_is_another_session(cast: Cast, other: dict[str, Any], first: str) -> None:
    acts = [lambda: declare(cast.cluster, said(**other)), lambda: see(cast.cluster)]
    for act in acts if first == "declared" else acts[::-1]:
        act()
    assert (AgentSession.objects.count(), SessionDeclaration.objects.count()) == (2, 0)


def test_a_campaign_or_end_that_is_declared_later_is_kept(cast: Cast) -> None:
    declare(cast.cluster, said(campaign=""))
    see(cast.cluster)
    ingest(cast.cluster, text(job(1, 60)))
    ended = START + timedelta(minutes=30)
    assert [each.outcome for each in declare(cast.cluster, said(ended=ended))] == ["changed"]
    assert Job.objects.get().campaign == "dock"
    session = AgentSession.objects.get()
    assert (session.ended, session.declaration.ended) == (None, ended), "its process goes on"


def test_a_nearer_one_takes_the_other_half_and_jobs_follow(cast: Cast) -> None:
    ingest(cast.cluster, text(job(1, 30), job(2, 200)))
    declare(cast.cluster, said(100))
    see(cast.cluster)
    kept = AgentSession.objects.get().pk
    second = seen(id=SECOND, start=START + timedelta(seconds=95))
    see(cast.cluster, second)
    by_process = {session.process: session for session in AgentSession.objects.all()}
    outer, inner = by_process[f"{BOOT}/{AGENT}"], by_process[f"{BOOT}/{SECOND}"]
    assert (outer.pk, outer.campaign, inner.campaign) == (kept, "", "dock")
    assert inner.declaration.started == START + timedelta(seconds=100)
    assert {each.raw_id: (each.session, each.campaign) for each in Job.objects.all()} == {
        1: (outer, ""),
        2: (inner, "dock"),
    }
    declare(cast.cluster, said(5, campaign="fold"))
    assert Job.objects.get(raw_id=1).campaign == "fold"
    assert AgentSession.objects.count() == 2


def test_what_refers_to_a_session_follows_when_it_becomes_part_of_another(cast: Cast) -> None:
    far = said(400)  # between two that run: of the second one, until that has a nearer
    declare(cast.cluster, said(301), far)
    see(cast.cluster, seen(id=SECOND, start=START + timedelta(seconds=300)))
    alone = AgentSession.objects.get(process="")
    report(cast, finding(host="login1", occurred=START + timedelta(seconds=450)))
    Finding.objects.update(session=alone)
    see(cast.cluster)
    assert Finding.objects.get().session == AgentSession.objects.get(process=f"{BOOT}/{AGENT}")
    assert not AgentSession.objects.filter(process="").exists()


def test_one_that_was_over_before_is_given_up(cast: Cast) -> None:
    see(cast.cluster)
    declare(cast.cluster, said(300))
    assert AgentSession.objects.count() == 1
    over = START + timedelta(seconds=20)
    see(cast.cluster, seen(last=over, end=over))
    assert [each[4] for each in halves()] == [over, None]
    assert not SessionDeclaration.objects.exists()


def test_rows_that_were_stored_twice_become_one_when_the_process_ends(cast: Cast) -> None:
    see(cast.cluster)
    row = AgentSession.objects.get()
    names = ("cluster_id", "cluster_user_id", "host", "kind", "harness")
    AgentSession.objects.create(**{name: getattr(row, name) for name in names}, started=START, campaign="dock")
    ended = START + timedelta(hours=1)
    see(cast.cluster, seen(end=ended))
    assert [(each[4], each[6], each[9]) for each in halves()] == [(ended, "dock", START)]


# --- any interleaving -------------------------------------------------------------------------------------
class _Undo(Exception):
    pass


def _rows_after(events: list[Any], *, times: int = 1) -> list[tuple[list[Any], list[Any]]]:
    """Rows and jobs after the events came in this order, each by itself, and came again; then all is taken back."""
    found = []
    try:
        with transaction.atomic():
            cluster = factories.make_cluster("interleaved")
            for _ in range(times):
                for event in events:
                    if isinstance(event, DeclaredSession):
                        declare(cluster, event)
                    elif isinstance(event, str):
                        ingest(cluster, text(event))
                    else:
                        see(cluster, event)
                jobs = Job.objects.filter(cluster=cluster).order_by("raw_id")
                names = ("raw_id", "actor_method", "campaign", "session__process", "session__started")
                found.append((halves(cluster), list(jobs.values_list(*names))))
            raise _Undo
    except _Undo:
        return found


def _nearest_pairs(declared: list[DeclaredSession], told: list[dict[str, Any]]) -> set[tuple[datetime, str]]:
    """The nearest pair of all, then the nearest of what is left, and so on."""
    pairs = []
    for one in declared:
        for other in told:
            end_s = int(other["end"].timestamp()) if other["end"] else None
            about = Seen(f"{BOOT}/{other['id']}", int(other["start"].timestamp()), end_s)
            if near := rank(int(one.started.timestamp()), about):
                pairs.append((near, one.started, about.process))
    taken, found = set[Any](), set()
    for _, started, process in sorted(pairs):
        if not {started, process} & taken:
            taken |= {started, process}
            found.add((started, process))
    return found


def test_whoever_loses_its_half_looks_on(db: None) -> None:
    """The second process is nearest to the first declaration; the first process has the second one left then."""
    events = [
        said(10, campaign="dock"),
        said(-20, campaign="fold"),
        seen(),
        seen(id=SECOND, start=START + timedelta(seconds=11)),
    ]
    found = [_rows_after(list(order))[0][0] for order in permutations(events)]
    assert {tuple((each[2], each[6]) for each in rows) for rows in found} == {
        ((f"{BOOT}/{AGENT}", "fold"), (f"{BOOT}/{SECOND}", "dock"))
    }  # fmt: skip


_AFTER = st.integers(0, 30) | st.integers(-700, 700)
_declared = st.builds(
    lambda after_s, campaign, ended_s: said(
        after_s, campaign=campaign, ended=None if ended_s is None else START + timedelta(seconds=after_s + ended_s)
    ),
    _AFTER, st.sampled_from(["dock", "fold", ""]), st.none() | st.integers(0, 900),
)  # fmt: skip
_begun = st.tuples(_AFTER, st.none() | st.integers(0, 300))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_interleaving_comes_to_the_same_rows_and_jobs(data: st.DataObject) -> None:
    declared = data.draw(st.lists(_declared, max_size=4, unique_by=lambda each: each.started))
    starts = data.draw(st.lists(_begun, max_size=4, unique_by=lambda each: each[0]))
    begun, told = [], []
    for number, (after_s, lasted_s) in enumerate(starts, 1):
        start = START + timedelta(seconds=after_s)
        one = seen(id=f"{number}-{number}", start=start, last=start)
        end = None if lasted_s is None else start + timedelta(seconds=lasted_s)
        begun.append(one)
        told.append(one | {"last": end or start, "end": end})
    jobs = [job(number, 90 * number) for number in (1, 4)]
    places = [("any", at) for at in range(len(declared) + len(jobs))]
    places += [(kind, at) for kind in ("begun", "told") for at in range(len(told))]
    shuffled: list[Any] = []
    for kind, at in data.draw(st.permutations(places)):
        # A collector tells of a session in order: that it began, then that it ended.
        if kind == "any":
            shuffled.append([*declared, *jobs][at])
        elif kind == "told":
            shuffled += [begun[at], told[at]]
        elif told[at] not in shuffled:
            shuffled.append(begun[at])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("telemetry.services.rollups.catch_up", lambda **_: True)
        (expected,) = _rows_after([*declared, *begun, *told, *jobs])
        assert _rows_after(shuffled, times=2) == [expected, expected]
    pairs = {(each[9], each[2]) for each in expected[0] if each[9]}
    assert pairs == _nearest_pairs(declared, told)
    assert len(expected[0]) == len(declared) + len(told) - len(pairs)


def test_what_a_gateways_log_tells_is_no_declaration_of_what_runs_on_its_host(cast: Cast):
    behind = said(campaign="", place="gateway", ended=START + timedelta(minutes=5), source="gateway")
    see(cast.cluster)
    for _ in range(2):
        declare(cast.cluster, behind)
    see(cast.cluster, seen(id=SECOND, start=START + timedelta(seconds=1)))
    assert [(row[2] != "", row[13]) for row in halves()] == [(True, "login"), (True, "login"), (False, "gateway")]
    assert not SessionDeclaration.objects.exists()
