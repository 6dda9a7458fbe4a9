"""Text read in columns ends in the same rows as text read row by row."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import connection, transaction
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, AgentSession, Cluster
from principals.services import DeclaredSession
from telemetry import services
from telemetry.engine.slurm.errors import FormatError
from telemetry.models import ActivitySubmission, Job, QuarantinedRow, RollupDay
from telemetry.services.ingest import rows, running
from tests import factories
from tests.telemetry.logs import counts, ingest, job_row, live_row, many, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql]

SECRET = "sbatch --export=HF_TOKEN=hf_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z"
ODD = (
    job_row(1, State="RUNNING", End="Unknown", Elapsed="00:10:00"), job_row(1), job_row(1, ExitCode="1:0"),
    job_row(2, SubmitLine=SECRET), job_row(2, Comment="campaign=dock"), job_row(3, SubmitLine="sbatch \u212aey.sh"),
    job_row(4, JobName="a\nb"), job_row(5, JobName="a|b"), job_row(6, State="NOVEL"), "nonsense",
    job_row(7, User="x" * 70), job_row(8, User="bob", Account="", JobID="8"), job_row(9, JobID="8_4", JobIDRaw="9"),
    job_row(10, JobID="10.batch", JobIDRaw="10.batch", User=""), job_row(11, NNodes="3000000000", NCPUS="1"),
    job_row(12, Start="2026-06-20T10:00:00", Elapsed="11-01:05:00"), job_row(13, NodeList="None assigned"),
    job_row(14, Start="Unknown", Elapsed="00:00:00", State="CANCELLED by 1001"), job_row(15, Partition="p" * 70),
    live_row(16, "RUNNING"), live_row(17, "COMPLETED"), live_row(18, "PENDING"),
    job_row(19, JobName='say "hi", \\N \\'),
    job_row(23, Submit="1999-12-31T10:00:00"), job_row(24, Start="1999-12-31T10:00:00"),
    job_row(25, Elapsed="99-00:00:00"), job_row(26, JobName="a\rb"), job_row(27, JobName="\\."),
    job_row(28, JobName="a\tb"), job_row(29, JobName="a\\tb", WorkDir="\\N"), job_row(30, Comment="a\\b\"c"),
    job_row(20, ReqMem="16?", AllocTRES=""), job_row(21, QOS="", JobName=""), job_row(22, Submit="2026-07-01T09:59:59"),
    job_row(31, Submit="2026-07-01T09:30:00"),
)  # fmt: skip
SESSIONS = [
    DeclaredSession(
        login=login, host=host, kind=kind, harness="codex" if kind == "agent" else "",
        started=datetime(2026, 7, 1, 9, tzinfo=UTC), ended=datetime(2026, 7, 1, 10, 30, tzinfo=UTC), campaign=campaign,
    )
    for login, host, kind, campaign in (("ada", "login1", "agent", "screen"), ("ada", "login2", "interactive", ""))
]  # fmt: skip


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


def rows_of(cluster: Cluster) -> list[dict[str, Any]]:
    """Everything that is stored of the jobs of a cluster, and of their rollups, but our own numbers."""
    ours = {"id", "cluster_id", "batch_id", "session_id", "cluster_user_id", "account_id", "lab_id", "rollup_id"}
    jobs = Job.objects.filter(cluster=cluster).order_by("raw_id", "submit")
    days = RollupDay.objects.filter(cluster=cluster)
    told = [
        {"user": job.cluster_user.login, "account": job.account and job.account.name, "lab": job.lab.name,
         "host": job.session and job.session.host}
        | {name: value for name, value in vars(job).items() if name not in ours and not name.startswith("_")}
        for job in jobs
    ]  # fmt: skip
    sums = [
        {"user": day.cluster_user.login}
        | {name: value for name, value in vars(day).items() if name not in ours and not name.startswith("_")}
        for day in days
    ]
    return told + sorted(sums, key=str)


def tie(cluster: Cluster, agent: Agent) -> None:
    """Let the sessions of harnesses be a registered agent's."""
    AgentSession.objects.filter(cluster=cluster, kind="agent").update(agent=agent)


def see_submissions(cluster: Cluster) -> None:
    """Let a collector have seen submissions: of most jobs under the shell, of one (22) under the harness too."""
    submit = datetime(2026, 7, 1, 10, tzinfo=UTC)
    for host, ago_s in (("login2", 4), ("login1", 6)):
        session = AgentSession.objects.get(cluster=cluster, host=host)
        ActivitySubmission.objects.create(session=session, at=submit - timedelta(seconds=ago_s))


def ingest_both_ways(bodies: list[bytes], *, block_rows: int) -> tuple[Any, Any]:
    """Ingest texts in order into two clusters, row by row and in blocks; return what each came to."""
    results, now = [], clock.now()
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(clock, "now", lambda: now)
        agent = factories.make_agent(factories.make_lab(), factories.make_user())
        patch.setitem(running.BLOCK_ROWS, connection.vendor, block_rows)
        for name, many_bytes in (("rows", 10**9), ("blocks", 0)):
            patch.setattr(running, "MANY_BYTES", many_bytes)
            cluster = factories.make_cluster(name)
            services.declare_sessions(actor=SYSTEM_ACTOR, cluster=cluster, sessions=SESSIONS)
            tie(cluster, agent)
            see_submissions(cluster)
            told = [counts(ingest(cluster, body)) for body in bodies]
            aside = QuarantinedRow.objects.filter(batch__cluster=cluster)
            results.append((told, rows_of(cluster), sorted(aside.values_list("line", "reason", "raw"))))
        transaction.set_rollback(True)
    return results[0], results[1]


@settings(max_examples=6, deadline=None, phases=[Phase.generate])  # a smaller case would take minutes to find
@given(
    files=st.lists(st.lists(st.sampled_from(ODD), min_size=1, max_size=12), min_size=1, max_size=3),
    block_rows=st.sampled_from([1, 3, 100]),
)
def test_any_files_in_any_order_come_to_the_same_rows_both_ways(files: list[list[str]], block_rows: int) -> None:
    filler = [job_row(1000 + number) for number in range(30)]
    bodies = [text(*filler[:15], *lines, *filler[15:]) for lines in files]

    by_rows, in_blocks = ingest_both_ways(bodies, block_rows=block_rows)

    assert in_blocks == by_rows


def test_all_odd_lines_together_come_to_the_same_rows_both_ways() -> None:
    filler = [job_row(1000 + number) for number in range(60)]

    by_rows, in_blocks = ingest_both_ways([text(*filler, *ODD, *filler)], block_rows=40)

    assert in_blocks == by_rows
    methods = {row["actor_method"] for row in in_blocks[1] if "actor_method" in row}
    assert {"observed", "observed_several", "none"} <= methods
    assert len({row["agent_id"] for row in in_blocks[1] if "agent_id" in row}) == 2, "one agent, and none"
    assert in_blocks[0][0] == {"created": 84, "updated": 3, "duplicate": 60, "rejected": 6, "step": 1}


@pytest.mark.parametrize("many_bytes", [0, 10**9])
def test_what_is_refused_is_said_to_stand_on_its_own_line(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, many_bytes: int
) -> None:
    monkeypatch.setattr(running, "MANY_BYTES", many_bytes)
    monkeypatch.setitem(running.BLOCK_ROWS, connection.vendor, 4)
    plain = [job_row(1000 + number) for number in range(20)]
    named, split = job_row(1, User="x" * 70), job_row(2, JobName="a\nb", User="y" * 70)

    ingest(cluster, text(*plain[:7], named, *plain[7:9], split, named, *plain[9:]))
    ingest(cluster, text(*plain, job_row(1000, User="z" * 70), plain[0]))

    # The header is line 1; a record that goes on behind its line stands where it begins.
    assert list(QuarantinedRow.objects.order_by("pk").values_list("line", flat=True)) == [9, 12, 14, 22]


def test_a_large_file_is_written_in_columns_and_known_when_it_comes_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MANY_BYTES", 0)
    one_by_one, make_row = [], rows.make_row

    def make_one(record: Any, *args: Any, **kwargs: Any) -> Any:
        one_by_one.append(record)
        return make_row(record, *args, **kwargs)

    monkeypatch.setattr(rows, "make_row", make_one)

    first, second = ingest(cluster, many(2000)), ingest(cluster, many(2000))

    # The last line waits for what may come behind it, and is read by itself.
    assert len(one_by_one) == 1
    assert (counts(first), counts(second)) == ({"created": 2000}, {"duplicate": 2000})


def test_what_fails_while_reading_ahead_fails_behind_what_was_read_before() -> None:
    def numbers() -> Iterator[Any]:
        yield from (1, 2)
        raise FormatError("cut_short", "It ends here.")

    seen = []
    with pytest.raises(FormatError):
        for number in running._one_ahead(numbers()):
            seen.append(number)
    assert seen == [1, 2]


def test_who_stops_reading_ahead_leaves_no_thread_behind() -> None:
    ahead = running._one_ahead(iter(cast(Any, range(1, 100))))
    assert next(ahead) == cast(Any, 1)
    ahead.close()  # type: ignore[attr-defined]
    assert not [each for each in threading.enumerate() if each.name.startswith("read-ahead")]
