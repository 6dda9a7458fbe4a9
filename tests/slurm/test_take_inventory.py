"""What a real Slurm says of its nodes, partitions, QoS and associations, and that its commands agree."""

import pytest

from principals.actors import SYSTEM_ACTOR
from principals.models import Association, Cluster, Lab
from telemetry.engine.slurm.errors import FormatError
from telemetry.engine.slurm.inventory import Bound, Limits, json_answers, scontrol_text
from telemetry.models import InventoryReading, Node, Partition, Qos
from telemetry.services import Commands, Reader, SlurmUnavailable
from tests import factories
from tests.support.slurm import ACCOUNT, CLUSTER, USERS, Slurm

pytestmark = [pytest.mark.django_db, pytest.mark.slurm]
Kind = InventoryReading.Kind
MIB = 2**20


@pytest.fixture
def cluster(db: None) -> Cluster:
    return factories.make_cluster(CLUSTER)


@pytest.fixture
def commands(facility: Slurm) -> Commands:
    return Commands(environment=facility.environment)


@pytest.fixture
def reader(cluster: Cluster, commands: Commands) -> Reader:
    return Reader(actor=SYSTEM_ACTOR, cluster=cluster, source=commands)


def test_everything_is_stored_as_slurm_knows_it(reader: Reader) -> None:
    assert [reader.take_inventory(kind) for kind in Kind] == [1, 2, 2, 2]
    node = Node.objects.get()
    assert (node.name, node.cpus, node.memory_bytes, node.gpus, node.gpus_used) == ("n1", 8, 4000 * MIB, 0, 0)
    assert node.partitions == ["shared", "test"]
    partitions = Partition.objects.order_by("name").values_list("name", "state", "nodes", "max_time_s", "is_default")
    assert list(partitions) == [("shared", "UP", "n1", 3600, True), ("test", "UP", "n1", 600, False)]
    tiny = Qos.objects.get(name="tiny")
    assert (tiny.flags, tiny.limits) == (["DenyOnLimit"], {"job_tres": {"cpu": 1}})
    rows = Association.objects.order_by("cluster_user__login").values_list(
        "cluster_user__login", "account__name", "qos", "is_default", "ended"
    )
    assert list(rows) == [(user, ACCOUNT, ["normal", "tiny"], True, None) for user in USERS]


def test_an_association_that_is_taken_away_is_ended(reader: Reader, facility: Slurm) -> None:
    facility.run("sacctmgr", "-i", "add", "account", "side", f"parent={ACCOUNT}")
    facility.run("sacctmgr", "-i", "add", "user", USERS[0], "account=side", "partition=test", "maxjobs=5")
    try:
        parents = {row.account: row.parent for row in reader.source.associations(CLUSTER).rows if not row.user}
        assert parents == {"root": "", ACCOUNT: "root", "side": ACCOUNT}
        (side,) = (row for row in reader.source.associations(CLUSTER).rows if row.account == "side" and row.user)
        assert (side.partition, side.is_default, side.limits) == ("test", False, Limits(user=Bound(jobs=5)))
        assert reader.take_inventory(Kind.ASSOCIATIONS) == 3
    finally:
        facility.run("sacctmgr", "-i", "remove", "account", "side")
    assert reader.take_inventory(Kind.ASSOCIATIONS) == 2
    assert [row.account.name for row in Association.objects.exclude(ended=None)] == ["side"]
    assert Lab.objects.filter(name="side").exists()


def test_the_commands_agree_about_a_node(facility: Slurm) -> None:
    told = scontrol_text.read_nodes(facility.run(*scontrol_text.NODES_COMMAND)).rows
    flags = [node._replace(state="", flags=()) for node in told]  # jobs of other tests come and go
    by_line = scontrol_text.read_sinfo(facility.run(*scontrol_text.SINFO_COMMAND)).rows
    assert [node._replace(state="", flags=(), reason="") for node in by_line] == flags
    as_json = json_answers.read_nodes(facility.run("sinfo", "--json")).rows
    assert [node._replace(state="", flags=()) for node in as_json] == flags


def test_a_reason_of_two_lines_and_forged_fields_do_no_harm(facility: Slurm) -> None:
    comment = "comment=a Reason=none Partitions=vip"
    facility.run("scontrol", "update", "nodename=n1", comment)
    (node,) = scontrol_text.read_nodes(facility.run(*scontrol_text.NODES_COMMAND)).rows
    assert (node.reason, node.partitions) == ("", ("shared", "test"))
    given = ("scontrol", "update", "nodename=n1", "state=drain", "reason=fan State=DOWN\nand more")
    facility.run(*given)
    try:
        (node,) = scontrol_text.read_nodes(facility.run(*scontrol_text.NODES_COMMAND)).rows
        (as_json,) = json_answers.read_nodes(facility.run("sinfo", "--json")).rows
        assert node.reason == as_json.reason == "fan State=DOWN"
        assert node.state != "DOWN" and "DRAIN" in node.flags
    finally:
        facility.run("scontrol", "update", "nodename=n1", "state=resume", "comment=")


def test_a_partition_says_who_may_use_it(reader: Reader, facility: Slurm) -> None:
    facility.run("scontrol", "update", "partitionname=test", f"allowaccounts={ACCOUNT}", "denyqos=tiny")
    try:
        reader.take_inventory(Kind.PARTITIONS)
        test = Partition.objects.get(name="test")
        assert (test.allowed_accounts, test.denied_qos, test.allowed_qos) == ([ACCOUNT], ["tiny"], [])
    finally:
        facility.run("scontrol", "update", "partitionname=test", "allowaccounts=all", "denyqos=")


def test_another_cluster_of_the_same_accounting_is_not_taken_for_this_one(commands: Commands) -> None:
    with pytest.raises((FormatError, SlurmUnavailable)):
        commands.associations("borealis")
