"""Nodes, partitions, QoS and associations: one form, whoever tells of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.inventory import (
    Association,
    Bound,
    Limits,
    Node,
    Partition,
    Qos,
    json_answers,
    pyslurm_dumps,
    sacctmgr_text,
    scontrol_text,
)
from tests.telemetry.engine.shared import shared_file

pytestmark = pytest.mark.shared_data
VERSIONS = ("24.11.5", "25.11.7")
GIB, MIB = 2**30, 2**20


def text_of(version: str, name: str) -> str:
    return shared_file("slurm", f"slurm-{version}", name).read_text()


def pyslurm_of(folder: str, name: str) -> Any:
    return json.loads(shared_file("slurm", folder, name).read_text())


def by_name(rows: tuple[Any, ...]) -> dict[str, Any]:
    return {row.name: row for row in rows}


NODES_22 = (
    Node("a100-1", "MIXED", (), 64, 512000 * MIB, 4, (("a100", 4),), 1, ("debug", "gpu"), ""),
    Node("a100-2", "MIXED", (), 64, 512000 * MIB, 4, (("a100", 4),), 4, ("gpu",), ""),
    Node("cpu-1", "MIXED", (), 128, 256000 * MIB, 0, (), 0, ("cpu", "debug"), ""),
    Node("cpu-2", "IDLE", ("DRAIN",), 128, 256000 * MIB, 0, (), 0, ("cpu",), "lab: fan failure"),
    Node("h100-1", "MIXED", (), 96, 1024000 * MIB, 4, (("h100", 4),), 3, ("gpu",), ""),
)
PLANNED = ("a100-1", "a100-2")  # by the backfill of the later releases
NODES_24 = tuple(node._replace(flags=("PLANNED",)) if node.name in PLANNED else node for node in NODES_22)
PARTITIONS = (
    Partition("cpu", "UP", "cpu-[1-2]", 2, 86400, True, (), (), (), (), "", "OFF"),
    Partition("gpu", "UP", "a100-[1-2],h100-1", 3, 172800, False, (), (), (), (), "", "OFF"),
    Partition(
        "debug", "UP", "a100-1,cpu-1", 2, 1800, False, (), (), ("debug", "normal", "trial"), (), "p_debug", "OFF"
    ),
)
QOS = (
    Qos("normal", 10, (), Limits()),
    Qos("debug", 100, ("DenyOnLimit",), Limits(user=Bound((), 1, 2), job_wall_s=1800)),
    Qos(
        "trial", 50, ("DenyOnLimit",),
        Limits(
            group=Bound((("gres/gpu", 3),)), user=Bound((("gres/gpu", 2),), 2, 5),
            job_tres=(("gres/gpu", 1), ("node", 1)), job_tres_minutes=(("gres/gpu", 15),), job_wall_s=900,
        ),
    ),
    Qos("standby", 0, ("NoReserve",), Limits()),
    Qos("p_debug", 0, (), Limits(user=Bound((("gres/gpu", 1),), None, 3))),
)  # fmt: skip


def associations(cluster: str) -> tuple[Association, ...]:
    every = ("debug", "normal", "standby", "trial")
    rows = (
        ("root", "", "", False, "", ("normal",)),
        ("root", "", "root", True, "normal", every),
        ("root_acct", "root", "", False, "", ("normal",)),
        ("chem", "root_acct", "", False, "", ("normal",)),
        ("chem", "", "games", True, "normal", every),
        ("chem", "", "news", True, "normal", every),
        ("chem", "", "root", False, "normal", every),
    )
    return tuple(
        Association(cluster, account, parent, user, "", default, default_qos, qos, Limits())
        for account, parent, user, default, default_qos, qos in rows
    )


@pytest.mark.parametrize(("version", "nodes"), [("22.05.8", NODES_22), ("24.11.5", NODES_24), ("25.11.7", NODES_24)])
def test_the_text_of_every_version_gives_the_same_nodes_partitions_and_qos(
    version: str, nodes: tuple[Node, ...]
) -> None:
    assert scontrol_text.read_nodes(text_of(version, "scontrol_show_nodes.txt")).rows == nodes
    shown = tuple(each._replace(is_hidden=False) for each in PARTITIONS)  # which the text alone tells
    assert scontrol_text.read_partitions(text_of(version, "scontrol_show_partitions.txt")).rows == shown
    assert sacctmgr_text.read_qos(text_of(version, "sacctmgr_qos.txt")).rows == QOS


@pytest.mark.parametrize("version", VERSIONS)
def test_the_json_of_the_same_cluster_gives_what_its_text_gives(version: str) -> None:
    nodes = json_answers.read_nodes(text_of(version, "scontrol_show_nodes.json"))
    assert nodes == (NODES_24, ())
    # JSON up to v0.0.44 does not tell which partition is the default, nor how it preempts.
    silent = tuple(each._replace(is_default=None, preempt_mode=None) for each in PARTITIONS)
    assert json_answers.read_partitions(text_of(version, "scontrol_show_partitions.json")) == (silent, ())
    assert json_answers.read_qos(text_of(version, "sacctmgr_qos.json")) == (QOS, ())


def test_sinfo_of_22_05_tells_of_nodes_in_json_and_of_their_groups_later() -> None:
    assert json_answers.read_nodes(text_of("22.05.8", "sinfo.json")) == (NODES_22, ())
    for version in VERSIONS:
        with pytest.raises(FormatError) as caught:
            json_answers.read_nodes(text_of(version, "sinfo.json"))
        assert caught.value.code == "grouped_nodes"
        assert "scontrol show nodes --json" in caught.value.remedy


@pytest.mark.parametrize("version", VERSIONS)
def test_associations_are_the_same_in_text_and_json(version: str) -> None:
    cluster = f"labl{version[:2]}"
    expected = associations(cluster)
    assert json_answers.read_associations(text_of(version, "sacctmgr_assoc.json")) == (expected, ())
    # As recorded, sacctmgr was not asked for the parent; which account is the default it tells elsewhere.
    silent = tuple(each._replace(parent=None, is_default=None if each.user else False) for each in expected)
    recorded = text_of(version, "sacctmgr_assoc.txt")
    assert sacctmgr_text.read_associations(recorded).rows == silent
    defaults = f"Cluster|User|Def Acct\n{cluster}|games|chem\n{cluster}|news|chem\n{cluster}|root|root\n"
    with_defaults = sacctmgr_text.read_associations(recorded, defaults).rows
    assert with_defaults == tuple(each._replace(parent=None) for each in expected)


def test_associations_of_22_05_are_the_same_as_later_ones() -> None:
    found = sacctmgr_text.read_associations(text_of("22.05.8", "sacctmgr_assoc.txt")).rows
    later = sacctmgr_text.read_associations(text_of("25.11.7", "sacctmgr_assoc.txt")).rows
    assert found == tuple(each._replace(cluster="labl22") for each in later)


def test_pyslurm_gives_what_scontrol_of_the_same_cluster_gives() -> None:
    folder = "pyslurm-25.11.2-jobs"
    told = json_answers.read_nodes(shared_file("slurm", folder, "nodes.json").read_text())
    assert pyslurm_dumps.read_nodes(pyslurm_of(folder, "pyslurm_nodes.json")) == told
    assert told.rows == (Node("vm", "ALLOCATED", (), 2, 8000 * MIB, 0, (), 0, ("shared", "test"), ""),)


def test_pyslurm_gives_the_partitions_and_associations_of_its_cluster() -> None:
    folder = "pyslurm-25.11.2-jobs"
    assert pyslurm_dumps.read_partitions(pyslurm_of(folder, "pyslurm_partitions.json")).rows == (
        Partition("test", "UP", "vm", 1, 1800, False, (), (), (), (), "", "OFF"),
        Partition("shared", "UP", "vm", 1, None, True, (), (), (), (), "", "OFF"),
    )
    found = pyslurm_dumps.read_associations(pyslurm_of(folder, "pyslurm_db_assocs.json")).rows
    silent = {"default_qos": None, "limits": Limits()}  # PySlurm does not tell the default QoS
    assert found == (
        Association("demo", "root", "", "", "", False, qos=("normal",), **silent),
        Association("demo", "root", "", "root", "", True, qos=("normal", "trial"), **silent),
        Association("demo", "pi_lab", "root", "", "", False, qos=("normal",), **silent),
        Association("demo", "pi_lab", "", "root", "", False, qos=("normal", "trial"), **silent),
    )
    names = pyslurm_dumps.read_qos(pyslurm_of(folder, "pyslurm_db_qos.json")).rows
    assert names == (Qos("normal", None, None, None), Qos("trial", None, None, None))


def test_pyslurm_gives_what_the_commands_of_the_25_11_cluster_give() -> None:
    samples = pyslurm_of("pyslurm-25.11.2", "to_dict_samples.json")
    partitions = pyslurm_dumps.read_partitions(samples["Partitions.load"]).rows
    told = by_name(scontrol_text.read_partitions(text_of("25.11.7", "scontrol_show_partitions.txt")).rows)
    assert by_name(partitions) == {name: each._replace(is_hidden=None) for name, each in told.items()}
    asked = sacctmgr_text.read_associations(text_of("25.11.7", "sacctmgr_assoc.txt")).rows
    for each in pyslurm_dumps.read_associations(samples["db.Associations"]).rows:
        (same,) = (one for one in asked if one.key == each.key)
        assert each == same._replace(parent=each.parent, is_default=each.is_default, default_qos=None)
    # Taken later: other jobs run. What a node is made of is the same.
    nodes = by_name(scontrol_text.read_nodes(text_of("25.11.7", "scontrol_show_nodes.txt")).rows)
    for node in pyslurm_dumps.read_nodes(samples["Nodes.load"]).rows:
        now = {"state": node.state, "flags": node.flags, "gpus_used": node.gpus_used}
        assert node == nodes[node.name]._replace(**now)
    assert [node.gpus_used for node in pyslurm_dumps.read_nodes(samples["Nodes.load"]).rows] == [4, 1]


REST = [("24.05", "0.0.41"), ("25.05", "0.0.43")]


def rest(release: str, version: str, name: str) -> str:
    return shared_file("slurm-rest", release, version, name).read_text()


@pytest.mark.parametrize(("release", "version"), REST)
def test_slurmrestd_tells_of_nodes_in_the_same_form(release: str, version: str) -> None:
    found = {}
    for path in sorted(shared_file("slurm-rest", release, version).glob("slurm-node-*.json")):
        (node,), warnings = json_answers.read_nodes(path.read_text())
        assert warnings == ()
        found[path.stem.removeprefix("slurm-node-")] = node
    assert found["down"].reason == "CPU dead"
    assert (found["drain"].state, found["drain"].flags) == ("IDLE", ("DRAIN",))
    busy = found["with-gpus-model-allocated"]
    assert (busy.state, busy.gpus, busy.gpu_types, busy.gpus_used) == ("ALLOCATED", 4, (("h100", 4),), 4)
    assert busy.memory_bytes == 512 * GIB
    if release == "25.05":
        assert (found["planned"].flags, found["idle"].gpus_used) == (("COMPLETING", "PLANNED"), 0)


@pytest.mark.parametrize(("release", "version"), REST)
def test_slurmrestd_tells_of_everything_else_in_the_same_form(release: str, version: str) -> None:
    partitions = json_answers.read_partitions(rest(release, version, "slurm-partitions.json")).rows
    limits_s = {each.name: each.max_time_s for each in partitions}
    told = {"batch": None, "debug": 3600, "interactive": 600, "ia": 600} if release == "24.05" else None
    assert limits_s == (told or {"normal": 7200, "gpu": 7200})
    qos = json_answers.read_qos(rest(release, version, "slurm-qos.json")).rows
    assert (len(qos), qos[0]) == (2, Qos("normal", 0, (), Limits()))
    found = json_answers.read_associations(rest(release, version, "slurmdb-associations.json")).rows
    assert len({each.key for each in found}) == len(found) == 18
    assert sum(each.is_default is True for each in found) == sum(bool(each.user) for each in found)


def test_an_unknown_version_is_read_as_the_nearest_known_one_and_says_so() -> None:
    content = json.loads(text_of("25.11.7", "scontrol_show_nodes.json"))
    content["meta"]["plugin"]["data_parser"] = "data_parser/v0.0.47"
    content["meta"]["slurm"]["release"] = "27.05.1"
    reading = json_answers.read_nodes(json.dumps(content))
    assert reading.rows == NODES_24
    assert reading.warnings == ("v0.0.47 (Slurm 27.05.1) is read as v0.0.44",)


def test_a_value_that_is_not_of_its_version_is_refused_and_never_guessed() -> None:
    content = json.loads(text_of("25.11.7", "scontrol_show_partitions.json"))
    content["partitions"][1]["maximums"]["time"] = 30
    with pytest.raises(FormatError) as caught:
        json_answers.read_partitions(json.dumps(content))
    assert caught.value.code == "odd_record"
    assert caught.value.detail == "Record 2: 30 is not a number of v0.0.44."


def _json_flag_but_text() -> list[Path]:
    return sorted(shared_file("slurm").glob("*/*.json-flag-but-text.txt"))


def test_text_in_spite_of_a_json_flag_is_recognised() -> None:
    paths = _json_flag_but_text()
    assert paths
    for path in paths:
        with pytest.raises(FormatError) as caught:
            json_answers.read_nodes(path.read_text())
        assert caught.value.code == "json_is_text"


@pytest.mark.parametrize(("release", "version"), REST)
def test_an_answer_with_errors_is_not_an_empty_cluster(release: str, version: str) -> None:
    with pytest.raises(FormatError) as caught:
        json_answers.read_nodes(rest(release, version, "slurm-job-unfound.json").replace('"jobs"', '"nodes"'))
    assert caught.value.code == "slurm_error"
    assert "Invalid job id specified" in caught.value.detail


@pytest.mark.parametrize(("warnings", "code"), [([], "empty_inventory"), ([{"description": "odd"}], "slurm_error")])
def test_an_empty_list_is_not_an_empty_cluster(warnings: list[dict[str, str]], code: str) -> None:
    content = json.loads(text_of("25.11.7", "sacctmgr_assoc.json")) | {"associations": [], "warnings": warnings}
    with pytest.raises(FormatError) as caught:
        json_answers.read_associations(json.dumps(content))
    assert caught.value.code == code
