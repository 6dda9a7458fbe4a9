"""What `gatehouse squeue` is told, of whom, and what is run for many."""

import base64
import stat
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from portal.core import clock
from principals.actors import SYSTEM_ACTOR
from principals.models import Agent, ClusterUser
from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.printing import KEYS
from telemetry.engine.slurm.queue import QueueNote
from telemetry.engine.slurm.queue_texts import Texts
from telemetry.models import Partition, QueueSheet, ShimUse, SlurmReader
from telemetry.services import Reader, prune
from telemetry.services.reader import sheets
from telemetry.services.reader.sheets import MOST_ROWS, Sheets
from telemetry.services.retention import SHEETS_KEPT
from telemetry.services.shims import CALLS, USES
from tests.conftest import Api, Cast
from tests.telemetry.logs import ingest, job_row, text

pytestmark = [pytest.mark.django_db, pytest.mark.sql]
SECRET = "ghp_" + "a1B2" * 9


def told(number: int, login: str, **texts: str) -> list[str]:
    known = {"jobid": str(number), "username": login, "state": "PENDING", "timeused": "0:00", "partition": "shared"}
    return [(known | texts).get(key, "") for key in KEYS]


def keep(cast: Cast, *rows: list[str], age_s: int = 3) -> None:
    SlurmReader.objects.get_or_create(cluster=cast.cluster)
    asked_s = clock.now_s() - age_s
    Sheets(cast.cluster, knows=lambda login: login != "stranger").keep(Texts(rows, asked_s, asked_s))


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    body = answer.json()
    return [row[body["fields"].index("jobid")] for row in body["rows"]]


def test_an_agent_is_told_of_its_owners_jobs_alone(cast: Cast, agent_api: Api):
    Partition.objects.create(cluster=cast.cluster, name="shared", state="UP", is_hidden=False)
    Partition.objects.create(cluster=cast.cluster, name="dark", state="UP", is_hidden=True)
    Partition.objects.create(cluster=cast.cluster, name="untold", state="UP")
    keep(cast, told(9, "colleague"), told(8, "manager"), told(7, "outsider"), told(1, "colleague"))
    answer = agent_api.get("/slurm/squeue")
    assert ids(answer) == ["9", "1"]  # in squeue's order
    body = answer.json()
    assert (body["logins"], body["fields"], body["open"]) == (["colleague"], list(KEYS), ["shared"])
    assert 2 <= body["age_s"] < 60 and answer["Retry-After"] == "5"
    assert "manager" not in answer.content.decode()


def test_nothing_is_kept_of_those_without_an_agent(cast: Cast):
    keep(cast, told(9, "colleague"), told(8, "manager"), told(7, "pi"))
    logins = set(QueueSheet.objects.values_list("cluster_user__login", flat=True))
    assert logins == {"colleague", "outsider"}  # an empty sheet says that there are no jobs
    Agent.objects.filter(owner=cast.colleague).update(status=Agent.Status.SUSPENDED)
    keep(cast, told(9, "colleague"))
    assert not QueueSheet.objects.filter(cluster_user__login="colleague").exists()


def test_a_sheet_is_written_where_it_changed(cast: Cast, django_assert_num_queries):
    SlurmReader.objects.create(cluster=cast.cluster)
    kept = Sheets(cast.cluster, knows=lambda login: True)
    kept.keep(Texts([told(9, "colleague")], 1000, 1000))
    with django_assert_num_queries(4):  # owners, savepoint, when it was read, release
        kept.keep(Texts([told(9, "colleague")], 1005, 1005))
    kept.keep(Texts([], 1010, 1010))
    assert QueueSheet.objects.get(cluster_user__login="colleague").rows == []
    kept.keep(None)  # another source reads on, which prints nothing
    assert not QueueSheet.objects.exists() and SlurmReader.objects.get().shown is None


def test_the_sheets_of_a_queue_that_nobody_looks_at_go_and_come_back(cast: Cast, monkeypatch):
    SlurmReader.objects.create(cluster=cast.cluster)
    kept, now_s = Sheets(cast.cluster, knows=lambda login: True), clock.now_s()
    kept.keep(Texts([told(9, "colleague")], now_s, now_s))
    assert prune()["queue_sheets"] == 0
    SlurmReader.objects.update(shown=clock.now() - SHEETS_KEPT - timedelta(seconds=1))
    assert prune()["queue_sheets"] == 2
    monkeypatch.setattr(sheets, "REMEMBERED_S", -1.0)  # the reader rested as long
    kept.keep(Texts([told(9, "colleague")], now_s, now_s))
    assert len(QueueSheet.objects.get(cluster_user__login="colleague").rows) == 1


def test_secrets_are_withheld_and_too_many_rows_not_kept(cast: Cast, agent_api: Api):
    keep(cast, told(9, "colleague", name=f"run {SECRET}"))
    (row,) = agent_api.get("/slurm/squeue").json()["rows"]
    assert row[KEYS.index("name")] is None
    keep(cast, *(told(number, "colleague") for number in range(1, MOST_ROWS + 2)))
    assert agent_api.get("/slurm/squeue").json()["code"] == "queue_not_kept"


def test_an_old_queue_is_not_told(cast: Cast, agent_api: Api):
    answer = agent_api.get("/slurm/squeue")
    assert (answer.status_code, answer.json()["code"]) == (409, "queue_unknown")
    keep(cast, told(9, "colleague"), age_s=120)
    answer = agent_api.get("/slurm/squeue")
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (409, "queue_unknown", "5")


def test_a_name_that_the_readers_host_does_not_know_has_no_sheet(cast: Cast, agent_api: Api):
    ClusterUser.objects.filter(login="colleague").update(login="stranger")
    keep(cast, told(9, "nobody"))
    assert agent_api.get("/slurm/squeue").json()["code"] == "queue_not_kept"


def test_ids_that_have_ended_are_the_callers_own(cast: Cast, agent_api: Api):
    mine = {"User": "colleague", "Account": "okafor_lab"}
    ingest(cast.cluster, text(job_row(1, **mine), job_row(2, **mine, State="RUNNING", End="Unknown"),
                              job_row(5, User="outsider", Account="marlowe_lab")))  # fmt: skip
    keep(cast)
    assert agent_api.get("/slurm/squeue?jobs=1,2,5,77").json()["ended"] == [1]
    assert agent_api.get("/slurm/squeue?jobs=1;2").json()["code"] == "jobs_malformed"


class Squeue:
    """A source that prints, of some release."""

    calls, busy_s, texts = 0, 0.0, Texts([], 1000, 1000)
    notes: ClassVar[dict[int, QueueNote]] = {}

    def __init__(self, release: str) -> None:
        self.release = release

    def identify(self) -> Identity:
        return Identity("aster", self.release)

    def look(self) -> dict[int, object]:
        return {}


@pytest.mark.parametrize(("release", "is_kept"), [("22.05.8", True), ("22.051.0", False), ("25.11.7", False)])
def test_nothing_is_kept_of_a_slurm_that_may_print_otherwise(cast: Cast, release: str, is_kept: bool):
    reader = Reader(actor=SYSTEM_ACTOR, cluster=cast.cluster, source=Squeue(release))  # type: ignore[arg-type]
    reader.meet()
    reader.look()
    assert (SlurmReader.objects.get().shown is not None) == is_kept


def test_which_cluster_must_be_clear(cast: Cast, agent_api: Api):
    assert agent_api.get("/slurm/squeue?cluster=elsewhere").json()["code"] == "cluster_unclear"


@pytest.fixture
def slurm(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings) -> Path:
    """A host with a `sacct` that prints its words and time zone and notes each call."""
    settings.SHARED_CALLS = ["aster"]
    for name in ("sacct", "squeue"):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\necho "$TZ|$*"\necho careful >&2\nexit 3\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))  # no other Slurm
    CALLS.forget()
    return tmp_path / "asked"


def body(*arguments: str, **given: object) -> dict[str, object]:
    return {"program": "sacct", "arguments": list(arguments), "login": "colleague", **given}


def test_a_call_is_made_once_for_all_who_ask_the_same(slurm: Path, agent_api: Api):
    first = agent_api.post("/slurm/shared-calls", body("-X", zone="Asia/Tokyo")).json()
    assert base64.b64decode(first["out"]) == b"Asia/Tokyo|--allocations --user=colleague\n"
    assert (first["status"], first["complaint"]) == (3, "careful\n")
    for _ in range(3):
        assert agent_api.post("/slurm/shared-calls", body("-X", zone="Asia/Tokyo")).json()["out"] == first["out"]
    assert slurm.read_text().count("\n") == 1
    agent_api.post("/slurm/shared-calls", body("-X"))
    assert slurm.read_text().count("\n") == 2


def test_what_is_not_for_the_caller_is_refused_and_counted(slurm: Path, agent_api: Api, cast: Cast):
    ingest(cast.cluster, text(job_row(5, User="outsider", Account="marlowe_lab")))
    for given, reason in (
        (body("-a"), "option"), (body("-j", "5"), "unknown_job"), (body("-u", "outsider"), "other_user"),
        (body(login="outsider"), "other_user"), (body(zone="../../etc/passwd"), "environment"),
        (body(reason="environment"), "environment"), (body("--json", program="squeue"), "option"),
        (body(program="squeue"), "all_users"),
    ):  # fmt: skip
        answer = agent_api.post("/slurm/shared-calls", given)
        assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (409, "not_shared", reason)
    assert not slurm.exists()
    USES.flush()
    counted = ShimUse.objects.filter(outcome="passed", program="sacct")
    assert dict(counted.values_list("reason", "times")) == {
        "option": 1, "unknown_job": 1, "other_user": 2, "environment": 2,
    }  # fmt: skip


def test_the_reasons_that_are_counted_are_few(slurm: Path, agent_api: Api, settings):
    settings.SHARED_CALLS = []
    for reason in ("accounting", "my_own_a", "my_own_b"):
        agent_api.post("/slurm/shared-calls", body("-X", reason=reason))
    USES.flush()
    counted = ShimUse.objects.filter(outcome="passed").values_list("reason", "times")
    assert dict(counted) == {"accounting": 1, "other": 2}


@pytest.mark.parametrize(
    ("arguments", "script", "reason"),
    [
        (("-n",), "kill -11 $$", "slurm"),
        (("--json", "-j", "6"), """echo '{"jobs": [{"user": "outsider"}]}'""", "all_users"),
    ],
)
def test_what_a_command_printed_is_not_always_an_answer(
    slurm: Path, agent_api: Api, cast: Cast, arguments: tuple[str, ...], script: str, reason: str
):
    ingest(cast.cluster, text(job_row(6, User="colleague", Account="okafor_lab")))
    (slurm.parent / "sacct").write_text(f"#!/bin/sh\n{script}\n")
    answer = agent_api.post("/slurm/shared-calls", body(*arguments))
    assert (answer.status_code, answer.json()["reason"]) == (409, reason)


def test_a_host_without_that_clusters_slurm_runs_nothing(slurm: Path, agent_api: Api, settings):
    settings.SHARED_CALLS = []
    refused = agent_api.post("/slurm/shared-calls", body("-X")).json()
    assert refused["reason"] == "not_here" and "no commands of Slurm for others" in refused["detail"]
    settings.SHARED_CALLS = ["aster"]
    (slurm.parent / "sacct").unlink()
    assert agent_api.post("/slurm/shared-calls", body("-n")).json()["reason"] == "slurm"


def test_counts_go_in_time(cast: Cast):
    today = clock.now().date()
    for days in (10, 2000):
        ShimUse.objects.create(
            cluster=cast.cluster, day=today - timedelta(days=days), program="squeue", outcome="printed", times=2
        )
    assert prune()["shim_uses"] == 1
