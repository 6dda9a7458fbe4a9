"""Nodes, partitions, QoS and associations as they are now, with commands that are scripts: a real Slurm is in
tests/slurm."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError

from portal.core.models import AuditEvent
from principals.actors import SYSTEM_ACTOR
from principals.models import Association, Cluster, ClusterUser, Lab
from telemetry.engine.slurm.errors import FormatError
from telemetry.models import InventoryReading, Node, Partition, Qos, SlurmReader
from telemetry.services import Commands, Reader, SlurmUnavailable, serve
from telemetry.services.reader import inventory
from telemetry.services.reader.service import MOST_PATIENT, Pace, Round
from tests import factories
from tests.telemetry.engine.test_read_inventory_texts import ASSOCIATIONS, DEFAULTS, NODE, PARTITION, QOS
from tests.telemetry.logs import CONFIG, text

pytestmark = pytest.mark.django_db
Kind = InventoryReading.Kind
SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
TOLD = {"config": CONFIG, "nodes": NODE, "partitions": PARTITION, "qos": QOS, "assoc": ASSOCIATIONS, "user": DEFAULTS}


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster("aster")


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    """Print the file that is called like what is shown, and note what was asked; fail where there is none."""
    for name in ("scontrol", "sacctmgr"):
        script = tmp_path / name
        script.write_text(
            f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/asked\nwhile [ "$1" != show ]; do shift; done\n'
            f"exec cat {tmp_path}/$2\n"
        )
        script.chmod(0o755)
    for name, said in TOLD.items():
        (tmp_path / name).write_text(said)
    return Commands(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})


@pytest.fixture
def reader(cluster: Cluster, commands: Commands) -> Reader:
    return Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)


def readings() -> dict[str, tuple[int, str]]:
    return {row.kind: (row.number, row.problem) for row in InventoryReading.objects.all()}


def test_everything_is_stored_as_it_is_told(reader: Reader, tmp_path: Path) -> None:
    assert [reader.take_inventory(kind) for kind in Kind] == [1, 1, 1, 2]
    node = Node.objects.get()
    assert (node.name, node.state, node.flags, node.cpus, node.memory_bytes) == (
        "n1", "IDLE", ["DRAIN"], 8, 4000 * 2**20,
    )  # fmt: skip
    assert (node.partitions, node.reason, node.gpus_used) == (["shared", "test"], "fan broken State=X| and", 0)
    partition = Partition.objects.get()
    assert (partition.state, partition.denied_accounts, partition.max_time_s) == ("DRAIN", ["sub"], None)
    qos = Qos.objects.get()
    assert (qos.priority, qos.flags) == (5, ["DenyOnLimit", "NoReserve"])
    assert qos.limits["group"] == {"tres": {"cpu": 10, "mem": 500 * 2**30}, "jobs": 9, "submitted": 11}
    assert readings() == {"nodes": (1, ""), "partitions": (1, ""), "qos": (1, ""), "associations": (2, "")}
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 5
    assert [line.endswith(" cluster=aster") for line in asked] == [False, False, False, True, True]
    reader.fail("")  # the next note of whatever kind tells what was asked
    assert SlurmReader.objects.get().calls == 5


def test_what_changes_is_written_and_what_is_gone_goes(reader: Reader, tmp_path: Path) -> None:
    two = NODE + NODE.replace("NodeName=n1", "NodeName=n2").replace("State=IDLE+DRAIN", "State=DOWN*")
    (tmp_path / "nodes").write_text(two)
    assert reader.take_inventory(Kind.NODES) == 2
    first = Node.objects.get(name="n1").pk
    (tmp_path / "nodes").write_text(two.replace("State=DOWN*", "State=MIXED"))
    reader.take_inventory(Kind.NODES)
    assert (Node.objects.get(name="n2").state, Node.objects.get(name="n2").flags) == ("MIXED", [])
    (tmp_path / "nodes").write_text(NODE)
    reader.take_inventory(Kind.NODES)
    assert Node.objects.get().pk == first


def test_each_cluster_has_its_own_nodes(reader: Reader, commands: Commands) -> None:
    reader.take_inventory(Kind.NODES)
    other = Reader(actor=SYSTEM_ACTOR, cluster=factories.make_cluster("borealis"), source=commands)
    other.take_inventory(Kind.NODES)
    assert Node.objects.filter(name="n1").count() == 2


@pytest.mark.parametrize(("kind", "model"), [(Kind.NODES, Node), (Kind.QOS, Qos)])
def test_an_answer_that_cannot_be_believed_changes_nothing_but_the_problem(
    reader: Reader, tmp_path: Path, kind: InventoryReading.Kind, model: Any
) -> None:
    reader.take_inventory(kind)
    read = InventoryReading.objects.get().read
    for said, error in (("", FormatError), ("an error\n", FormatError), (None, SlurmUnavailable)):
        (tmp_path / kind).write_text(said) if said is not None else (tmp_path / kind).unlink()
        with pytest.raises(error):
            reader.take_inventory(kind)
        row = InventoryReading.objects.get()
        assert (row.number, row.read) == (1, read)
        assert row.problem
    assert model.objects.count() == 1
    (tmp_path / kind).write_text(TOLD[kind])
    reader.take_inventory(kind)
    assert InventoryReading.objects.get().problem == ""


def test_associations_feed_logins_accounts_and_labs(reader: Reader, tmp_path: Path) -> None:
    reader.take_inventory(Kind.ASSOCIATIONS)
    rows = Association.objects.order_by("account__name")
    assert [(r.cluster_user.login, r.account.name, r.partition, r.qos, r.is_default, r.ended) for r in rows] == [
        ("games", "chem", "", ["normal", "tiny"], True, None), ("games", "sub", "test", ["normal"], False, None),
    ]  # fmt: skip
    # Nobody's work is charged to Slurm's own account.
    assert set(Lab.objects.values_list("name", flat=True)) == {"chem", "sub"}
    assert AuditEvent.objects.filter(verb="association.refresh").count() == 1
    (tmp_path / "assoc").write_text("".join(ASSOCIATIONS.splitlines(keepends=True)[:-1]))
    reader.take_inventory(Kind.ASSOCIATIONS)
    assert [row.ended is None for row in rows.all()] == [True, False]
    assert AuditEvent.objects.filter(verb="association.refresh").count() == 2


def test_names_that_no_job_may_have_are_left_out_of_associations_and_said(reader: Reader, tmp_path: Path) -> None:
    lines = ASSOCIATIONS.splitlines(keepends=True)
    bad = [lines[-1].replace("games", SECRET), lines[-1].replace("sub", "s" * 65)]
    (tmp_path / "assoc").write_text("".join([*lines, *bad]))
    assert reader.take_inventory(Kind.ASSOCIATIONS) == 2
    problem = readings()["associations"][1]
    assert "looks like a secret" in problem and "more than 64" in problem and SECRET[:12] not in problem
    assert set(Association.objects.values_list("account__name", flat=True)) == {"chem", "sub"}
    assert not ClusterUser.objects.filter(login__startswith="ghp").exists()


def test_a_cluster_without_users_ends_nothing(reader: Reader, tmp_path: Path) -> None:
    reader.take_inventory(Kind.ASSOCIATIONS)
    (tmp_path / "assoc").write_text("".join(ASSOCIATIONS.splitlines(keepends=True)[:3]))
    assert reader.take_inventory(Kind.ASSOCIATIONS) == 0
    assert Association.objects.filter(ended=None).count() == 2


def test_each_kind_comes_at_its_own_pace_and_more_slowly_where_it_is_in_vain() -> None:
    round_ = Round(Pace(nodes_s=60, rest_s=600))
    first = [round_.next_due(0)]
    while (kind := round_.next_due(0)) is not None:
        first.append(kind)
        round_.settle(kind, 0, worked=kind != Kind.QOS)
    assert sorted(first[1:]) == sorted(Kind)
    assert (round_.next_due(59), round_.next_due(60)) == (None, Kind.NODES)
    round_.settle(Kind.NODES, 60, worked=False)
    assert (round_.next_due(179), round_.next_due(180)) == (None, Kind.NODES)
    for _ in range(9):
        round_.settle(Kind.NODES, 180, worked=False)
    assert round_.next_due(599) is None
    assert {round_.next_due(600)} <= {Kind.PARTITIONS, Kind.ASSOCIATIONS}
    for kind in (Kind.PARTITIONS, Kind.ASSOCIATIONS):
        round_.settle(kind, 600, worked=True)
    assert round_.next_due(180 + 60 * MOST_PATIENT - 1) is None
    assert round_.next_due(180 + 60 * MOST_PATIENT) == Kind.NODES


def test_an_inventory_in_vain_keeps_nobody_from_looking(cluster: Cluster, commands: Commands, tmp_path: Path) -> None:
    for name, file in (("squeue", "queue"), ("sacct", "accounting"), ("sdiag", "counters")):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name}" >> {tmp_path}/asked\nexec cat {tmp_path}/{file}\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "queue").write_text("")
    (tmp_path / "accounting").write_bytes(text())
    users = "Remote Procedure Call statistics by user\n\tada ( 1001) count:1 ave_time:9 total_time:9\n"
    (tmp_path / "counters").write_text(f"Data since now (5)\n\n{users}\nPending RPC statistics\n")
    for name in TOLD.keys() - {"config"}:
        (tmp_path / name).unlink()
    stop, said = threading.Event(), list[str]()

    def say(words: str) -> None:
        said.append(words)
        if len(said) > len(Kind):
            stop.set()

    pace = Pace(look_s=0.01, sweep_s=300)
    serve(actor=SYSTEM_ACTOR, cluster=cluster, source=commands, pace=pace, stop=stop, say=say)
    assert [words.split(":")[0] for words in said] == ["Reading aster.", *(kind.label for kind in Kind)]
    assert (tmp_path / "asked").read_text().count("squeue") >= len(Kind)
    assert SlurmReader.objects.get().problem == ""
    assert all(problem for _, problem in readings().values())


def test_what_slurm_complains_of_and_what_people_write_on_a_node_is_redacted(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text(NODE.replace("Reason=fan broken", f"Reason=token={SECRET} fan broken"))
    reader.take_inventory(Kind.NODES)
    (tmp_path / "qos").write_text(f"\x1b[2J{SECRET}\n")
    with pytest.raises(FormatError):
        reader.take_inventory(Kind.QOS)
    kept = Node.objects.get().reason, InventoryReading.objects.get(kind=Kind.QOS).problem
    assert all(kept) and SECRET[:12] not in str(kept) and kept[1].isprintable()


def test_a_name_that_no_column_can_hold_spoils_the_kind_alone(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(*_: object) -> int:
        raise DataError("value too long for type character varying(64)")

    monkeypatch.setitem(inventory._TAKERS, Kind.QOS, too_long)
    with pytest.raises(FormatError, match="too long"):
        reader.take_inventory(Kind.QOS)
    assert readings()["qos"] == (0, "Slurm told something about qos that is too long.")
