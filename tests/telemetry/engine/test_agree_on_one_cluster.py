"""The same cluster gives the same normal form, whoever tells of it: every version of which two forms are recorded.

A form may tell less (`None`), and each is listed with what it leaves out; what it tells is what the others tell.
Accounting is compared in `test_read_sacct_json`, for text, JSON and PySlurm of every version.
"""

import json
from typing import Any

import pytest

from telemetry.engine.slurm import identity, queue, statistics
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.identity import Identity
from telemetry.engine.slurm.inventory import Reading, json_answers, pyslurm_dumps, sacctmgr_text, scontrol_text
from telemetry.engine.slurm.pyslurm_jobs import JOB_FIELDS
from telemetry.engine.slurm.queue import QUEUE_FIELDS, Queue, Standing
from telemetry.engine.slurm.statistics import STATISTICS_FIELDS, Asked, Statistics
from tests.telemetry.engine.shared import shared_file

pytestmark = pytest.mark.shared_data
COMMANDS = ("22.05.8", "24.11.5", "25.11.7")
WITH_JSON = COMMANDS[1:]
DEMO, LAB_DUMP = "pyslurm-25.11.2-jobs", "pyslurm-25.11.2"

FIELDS = (
    QUEUE_FIELDS, JOB_FIELDS, pyslurm_dumps.NODE_FIELDS, pyslurm_dumps.PARTITION_FIELDS, pyslurm_dumps.QOS_FIELDS,
    pyslurm_dumps.ASSOCIATION_FIELDS, STATISTICS_FIELDS,
)  # fmt: skip


def told(folder: str, name: str) -> str:
    return shared_file("slurm", folder, name).read_text()


def dumped(name: str, folder: str = DEMO) -> Any:
    return json.loads(told(folder, name))


def as_columns(squeue: str) -> str:
    """What was recorded of squeue, as the reader asks for it; restarts were not recorded."""
    lines = [line.split("|") for line in squeue.splitlines()[1:]]
    return "".join(f"{line[0]}|{line[6]}|0|\n" for line in lines)


def without_restarts(found: Queue) -> Queue:
    return {job: standing._replace(restarts=0) for job, standing in found.items()}


@pytest.mark.parametrize("version", COMMANDS)
def test_the_queue_in_text_and_in_json(version: str) -> None:
    text = queue.read_queue(as_columns(told(f"slurm-{version}", "squeue.txt")))
    as_json = queue.read_queue_json(told(f"slurm-{version}", "squeue.json"))
    # Taken moments apart, nothing came or left; in the JSON of 22.05 stand also the twelve jobs that have ended.
    assert without_restarts(as_json) == text
    assert (len(as_json), as_json[28]) == (15, Standing("PENDING", 1))
    if version in WITH_JSON:
        narrow = queue.read_queue_json(told(f"slurm-{version}", "squeue_states_running.json"))
        assert narrow == {job: each for job, each in as_json.items() if each.state == "RUNNING"}


@pytest.mark.parametrize("version", WITH_JSON)
def test_the_queue_in_scontrol_and_in_squeue(version: str) -> None:
    shown = queue.read_queue_json(told(f"slurm-{version}", "scontrol_show_jobs.json"))
    assert shown == queue.read_queue_json(told(f"slurm-{version}", "squeue.json"))


def test_the_queue_in_pyslurm_and_in_json() -> None:
    found = queue.read_queue_dump(dumped("pyslurm_jobs.json"))
    assert found == queue.read_queue_json(told(DEMO, "squeue.json"))
    assert found == {4: Standing("RUNNING", 0), 7: Standing("RUNNING", 0), 8: Standing("PENDING", 0)}
    notes = queue.read_notes_dump(dumped("pyslurm_jobs.json"))
    assert notes[4].stdout.endswith("/slurm-4_3.out") and notes[8].reason == "JobHeldUser"
    assert queue.read_notes_dump([{"id": 7}, {"id": None, "state_reason": "x"}]) == {7: queue.QueueNote()}


@pytest.mark.parametrize("version", WITH_JSON)
def test_the_counters_in_text_and_in_json(version: str) -> None:
    text = statistics.read_statistics(told(f"slurm-{version}", "sdiag.txt"))
    as_json = statistics.read_statistics_json(told(f"slurm-{version}", "sdiag.json"))
    assert (as_json.since_s, as_json.by_user["games"]) == (text.since_s, text.by_user["games"])
    # The text was asked for a little later, by root.
    assert as_json.by_user.keys() == text.by_user.keys()
    assert 0 < as_json.by_user["root"].calls < text.by_user["root"].calls


def test_the_counters_in_pyslurm_and_in_json() -> None:
    as_json = statistics.read_statistics_json(told(DEMO, "sdiag.json"))
    assert as_json == Statistics(1795962347, {"root": Asked(38, 21546)})
    # PySlurm asked a moment later, which is one call more.
    assert statistics.read_statistics_dump(dumped("pyslurm_statistics.json")) == Statistics(
        as_json.since_s, {"root": Asked(39, 21592)}
    )


@pytest.mark.parametrize("version", COMMANDS)
def test_a_slurm_says_which_it_is(version: str) -> None:
    name = f"labl{version[:2]}"
    found = identity.read_identity(told(f"slurm-{version}", "scontrol_show_config.txt"))
    assert found == Identity(name, version)
    assert identity.read_identity_dump({"cluster_name": name, "version": version}) == found


READERS = {
    "nodes": (scontrol_text.read_nodes, "scontrol_show_nodes.txt", json_answers.read_nodes, "scontrol_show_nodes.json"),
    "partitions": (
        scontrol_text.read_partitions, "scontrol_show_partitions.txt",
        json_answers.read_partitions, "scontrol_show_partitions.json",
    ),
    "qos": (sacctmgr_text.read_qos, "sacctmgr_qos.txt", json_answers.read_qos, "sacctmgr_qos.json"),
    "associations": (
        sacctmgr_text.read_associations, "sacctmgr_assoc.txt", json_answers.read_associations, "sacctmgr_assoc.json",
    ),
}  # fmt: skip
LEFT_OUT = {
    "nodes": set[str](), "qos": set[str](),
    "partitions": {"is_default", "preempt_mode", "is_hidden"},  # by the JSON
    "associations": {"parent", "is_default"},  # by sacctmgr as it was asked when it was recorded
}  # fmt: skip


def assert_agree(one: Reading[Any], other: Reading[Any], left_out: set[str]) -> None:
    """Row by row the same, but for what one of them does not tell: that is listed, and nothing else is left out."""
    assert len(one.rows) == len(other.rows) > 0
    silent = set()
    for row, same in zip(one.rows, other.rows, strict=True):
        for name in row._fields:
            values = getattr(row, name), getattr(same, name)
            if None in values and values != (None, None):
                silent.add(name)
            else:
                assert values[0] == values[1], name
    assert silent - {"max_time_s"} == left_out


@pytest.mark.parametrize("version", WITH_JSON)
@pytest.mark.parametrize("kind", READERS)
def test_the_inventory_in_text_and_in_json(version: str, kind: str) -> None:
    read_text, text, read_json, as_json = READERS[kind]
    folder = f"slurm-{version}"
    assert_agree(read_text(told(folder, text)), read_json(told(folder, as_json)), LEFT_OUT[kind])


def test_the_inventory_of_22_05_in_text_and_in_json() -> None:
    text = scontrol_text.read_nodes(told("slurm-22.05.8", "scontrol_show_nodes.txt"))
    assert_agree(text, json_answers.read_nodes(told("slurm-22.05.8", "sinfo.json")), set())


def test_the_inventory_in_pyslurm_and_in_the_commands() -> None:
    in_json = json_answers.read_nodes(told(DEMO, "nodes.json"))
    assert_agree(pyslurm_dumps.read_nodes(dumped("pyslurm_nodes.json")), in_json, set())
    samples = dumped("to_dict_samples.json", LAB_DUMP)
    by_pyslurm = pyslurm_dumps.read_partitions(samples["Partitions.load"])
    text = scontrol_text.read_partitions(told("slurm-25.11.7", "scontrol_show_partitions.txt"))
    in_order = [Reading(tuple(sorted(each.rows, key=lambda row: row.name))) for each in (by_pyslurm, text)]
    assert_agree(*in_order, {"is_hidden"})
    names = [each.name for each in pyslurm_dumps.read_qos(samples["db.QoS"]).rows]
    assert sorted(names) == sorted(
        each.name for each in sacctmgr_text.read_qos(told("slurm-25.11.7", "sacctmgr_qos.txt")).rows
    )


@pytest.mark.parametrize("folder", [DEMO, LAB_DUMP])
def test_all_that_the_process_is_asked_for_is_in_the_dumps(folder: str) -> None:
    if folder == DEMO:
        files = ("jobs", "db_jobs", "nodes", "partitions", "db_qos", "db_assocs", "statistics")
        dumps = [dumped(f"pyslurm_{name}.json") for name in files]
    else:
        samples = dumped("to_dict_samples.json", LAB_DUMP)
        keys = ("Jobs.load", "db.Jobs.load", "Nodes.load", "Partitions.load", "db.QoS", "db.Associations")
        dumps = [*(samples[key] for key in keys), samples["slurmctld.Statistics"]]
    first = [next(iter(each.values() if isinstance(each, dict) else each)) for each in dumps[:-1]] + dumps[-1:]
    for record, fields in zip(first, FIELDS, strict=True):
        assert record.keys() >= set(fields)


@pytest.mark.parametrize("name", ["scontrol_show_config.json-flag-but-text.txt", "sdiag.txt", "squeue.txt"])
def test_text_in_spite_of_a_json_flag_is_an_error_with_a_remedy(name: str) -> None:
    for read in (queue.read_queue_json, statistics.read_statistics_json):
        with pytest.raises(FormatError) as caught:
            read(told("slurm-24.11.5", name))
        assert caught.value.code == "json_is_text" and "read its text" in caught.value.remedy
