"""The odd things that scontrol, sinfo and sacctmgr print, as a 22.05 printed them."""

import pytest

from telemetry.engine.slurm.errors import FieldError, FormatError
from telemetry.engine.slurm.inventory import Bound, Limits, Node, Qos, describe_limits, sacctmgr_text, scontrol_text
from telemetry.engine.slurm.inventory.values import count_gpus, read_gres, read_node_state, read_tres_limit

MIB = 2**20
# One line; its administrator wrote a reason of two lines and a comment that looks like fields.
NODE = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=1.17 AvailableFeatures=(null) "
    "ActiveFeatures=(null) Gres=(null) GresDrain=N/A NodeAddr=127.0.0.1 NodeHostName=vm Port=48689 Version=22.05.8 "
    "OS=Linux 6.18 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=4000 AllocMem=0 FreeMem=21470 Sockets=8 Boards=1 "
    "State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=shared,test  "
    "BootTime=2026-11-29T16:04:00 CfgTRES=cpu=8,mem=4000M,billing=8 AllocTRES= CapWatts=n/a CurrentWatts=0 "
    "Reason=fan broken State=X| and [root@2026-11-29T23:02:25]        second line Comment=a Reason=no one Extra=x y\n"
)
PARTITION = (
    "PartitionName=test AllowGroups=ALL DenyAccounts=sub DenyQos=tiny AllocNodes=ALL Default=NO QoS=N/A "
    "DefaultTime=00:05:00 MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 Nodes=(null) PreemptMode=REQUEUE State=DRAIN "
    "TotalCPUs=0 TotalNodes=0\n"
)
QOS = (
    "Name|Priority|Flags|PreemptMode|UsageFactor|GrpTRES|GrpTRESMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|"
    "MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|MaxSubmitPA|MinTRES\n"
    "tiny|5|DenyOnLimit,NoReserve|cluster|1.000000|cpu=10,mem=500G|cpu=1000|9|11|10:00:00|cpu=1||cpu=77|1-02:00:00|"
    "cpu=4|3|4|mem=1500M|7|8|gres/gpu:a100=1\n"
)
ASSOCIATIONS = (
    "Cluster|Account|ParentName|User|Partition|QOS|Def QOS|GrpTRES|GrpTRESMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|"
    "MaxTRESPerNode|MaxTRESMins|MaxJobs|MaxSubmit|MaxWall\n"
    "aster|root||||normal||||||||||||\n"
    "aster|chem|root|||normal||||||||||||\n"
    "aster|chem||games||normal,tiny|tiny|cpu=8|cpu=99|6|9|01:30:00|cpu=4||cpu=11|5|50|00:30:00\n"
    "aster|sub||games|test|normal||||||||||||\n"
)
DEFAULTS = "Cluster|User|Def Acct\naster|games|chem\naster|games|chem\nother|games|sub\n"


def test_what_an_administrator_writes_poses_as_no_field() -> None:
    (node,) = scontrol_text.read_nodes(NODE).rows
    reason = "fan broken State=X| and"
    assert node == Node("n1", "IDLE", ("DRAIN",), 8, 4000 * MIB, 0, (), 0, ("shared", "test"), reason)


def test_a_comment_gives_a_node_no_partition_and_no_reason() -> None:
    bare = NODE.partition("Reason=")[0].replace("Partitions=shared,test", "")
    (node,) = scontrol_text.read_nodes(
        f"{bare}Comment=a Partitions=vip Reason=none [root@now] Extra=GresUsed=gpu:8"
    ).rows
    assert (node.partitions, node.reason, node.gpus_used) == ((), "", 0)


@pytest.mark.parametrize(
    ("reason", "read"),
    [("Reason=down", "down"), ("Reason=a [b] c [slurm@2026-01-01T00:00:00]", "a [b] c"), ("Reason=a Comment=b", "a")],
)
def test_a_reason_ends_where_its_author_is_named(reason: str, read: str) -> None:
    text = NODE.partition("Reason=")[0] + reason
    assert scontrol_text.read_nodes(text).rows[0].reason == read


@pytest.mark.parametrize(
    ("fields", "used"),
    [
        ("Gres=gpu:4 GresUsed=gpu:a100:3(IDX:0,2-3) CfgTRES=cpu=1 AllocTRES=", 3),
        ("Gres=gpu:4 CfgTRES=cpu=1,gres/gpu=4 AllocTRES=cpu=1,gres/gpu=2", 2),
        ("Gres=gpu:4 CfgTRES=cpu=1,gres/gpu=4 AllocTRES=", 0),
        ("Gres=gpu:4 CfgTRES=cpu=1 AllocTRES=cpu=1", None),
        ("Gres=(null) CfgTRES=cpu=1 AllocTRES=cpu=1", 0),
    ],
)
def test_gpus_in_use_are_counted_where_somebody_counts_them(fields: str, used: int | None) -> None:
    text = f"NodeName=n1 CPUTot=8 RealMemory=4000 State=MIXED Partitions=test {fields}"
    assert scontrol_text.read_nodes(text).rows[0].gpus_used == used


def test_a_partition_says_who_is_denied() -> None:
    (partition,) = scontrol_text.read_partitions(PARTITION).rows
    assert (partition.denied_accounts, partition.denied_qos) == (("sub",), ("tiny",))
    assert (partition.allowed_accounts, partition.allowed_qos, partition.qos) == ((), (), "")
    assert (partition.state, partition.nodes, partition.max_time_s, partition.preempt_mode) == (
        "DRAIN", "", None, "REQUEUE",
    )  # fmt: skip


def test_every_limit_of_a_qos_stands_in_its_place() -> None:
    assert sacctmgr_text.read_qos(QOS).rows == (
        Qos(
            "tiny", 5, ("DenyOnLimit", "NoReserve"),
            Limits(
                group=Bound((("cpu", 10), ("mem", 500 * 2**30)), 9, 11), user=Bound((("cpu", 4),), 3, 4),
                account=Bound((("mem", 1500 * MIB),), 7, 8), group_tres_minutes=(("cpu", 1000),), group_wall_s=36000,
                job_tres=(("cpu", 1),), job_tres_minutes=(("cpu", 77),), job_wall_s=93600,
                job_min_tres=(("gres/gpu:a100", 1),),
            ),
        ),
    )  # fmt: skip


def test_limits_are_described_without_what_is_not_limited() -> None:
    (qos,) = sacctmgr_text.read_qos(QOS.replace("cpu=10,mem=500G|cpu=1000|9|11|10:00:00", "||||")).rows
    assert describe_limits(qos.limits) == {
        "user": {"tres": {"cpu": 4}, "jobs": 3, "submitted": 4},
        "account": {"tres": {"mem": 1500 * MIB}, "jobs": 7, "submitted": 8},
        "job_tres": {"cpu": 1}, "job_tres_minutes": {"cpu": 77}, "job_wall_s": 93600,
        "job_min_tres": {"gres/gpu:a100": 1},
    }  # fmt: skip
    assert describe_limits(Limits()) == describe_limits(None) == {}


def test_every_limit_of_an_association_stands_in_its_place() -> None:
    root, chem, games, sub = sacctmgr_text.read_associations(ASSOCIATIONS, DEFAULTS).rows
    assert (root.parent, chem.parent, games.parent) == ("", "root", "")
    assert (chem.is_default, games.is_default, sub.is_default, sub.partition) == (False, True, False, "test")
    assert (games.qos, games.default_qos) == (("normal", "tiny"), "tiny")
    assert games.limits == Limits(
        group=Bound((("cpu", 8),), 6, 9), user=Bound((), 5, 50), group_tres_minutes=(("cpu", 99),), group_wall_s=5400,
        job_tres=(("cpu", 4),), job_tres_minutes=(("cpu", 11),), job_wall_s=1800,
    )  # fmt: skip


def test_sinfo_says_where_a_node_is_line_by_line() -> None:
    text = "n1|shared*|idle+drain|8|4000|(null)|(null)|\nn1|test|idle+drain|8|4000|(null)|(null)|\ng1|gpu|mixed*|64|" \
        "512000|gpu:a100:4(S:0-1)|gpu:a100:1(IDX:0)|\n"  # fmt: skip
    assert scontrol_text.read_sinfo(text).rows == (
        Node("n1", "IDLE", ("DRAIN",), 8, 4000 * MIB, 0, (), 0, ("shared", "test"), None),
        Node("g1", "MIXED", ("NOT_RESPONDING",), 64, 512000 * MIB, 4, (("a100", 4),), 1, ("gpu",), None),
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("DOWN*+DRAIN", ("DOWN", ("DRAIN", "NOT_RESPONDING"))),
        ("idle~", ("IDLE", ("POWERED_DOWN",))),
        ("mixed-", ("MIXED", ("PLANNED",))),
        ("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP", ("ALLOCATED", ("CLOUD", "NOT_RESPONDING", "POWERING_UP"))),
    ],
)
def test_a_node_state_is_a_base_and_flags(text: str, state: tuple[str, tuple[str, ...]]) -> None:
    assert read_node_state(text) == state


@pytest.mark.parametrize("text", ["", "DRAIN", "IDLE+MIXED", "IDLE+"])
def test_what_has_no_one_base_state_is_none(text: str) -> None:
    with pytest.raises(FieldError):
        read_node_state(text)


@pytest.mark.parametrize(
    ("text", "gpus", "types"),
    [
        ("gpu:a100:2(S:0),gpu:h100:1(S:1)", 3, (("a100", 2), ("h100", 1))),
        ("gpu:4,shard:16", 4, ()),
        ("gpu:1g.5gb:7", 7, (("1g.5gb", 7),)),
        ("gpu", 1, ()),
        ("gpu:a100", 1, (("a100", 1),)),
        ("gpu:no_consume:2", 2, ()),
        ("craynetwork:4", 0, ()),
        ("gpu:0", 0, ()),
        ("gpu:h100:0(IDX:N/A)", 0, ()),
        ("(null)", 0, ()),
    ],
)
def test_gpus_are_counted_by_type(text: str, gpus: int, types: tuple[tuple[str, int], ...]) -> None:
    assert count_gpus(read_gres(text)) == (gpus, types)


@pytest.mark.parametrize("text", ["gpu:a:b:c:1", "gpu:a b:1", ":1", "gpu:a100:4,"])
def test_what_is_no_generic_resource_is_refused(text: str) -> None:
    with pytest.raises(FieldError):
        read_gres(text)


@pytest.mark.parametrize("text", ["cpu", "cpu=", "=1", "cpu=x", "mem=y"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(FieldError):
        read_tres_limit(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_inventory"),
        ("No nodes in the system\n", "not_scontrol"),
        (NODE + "slurm_load_node error: Unable to contact slurm controller\nNodeName=", "not_scontrol"),
        (NODE.replace("State=IDLE+DRAIN ", "").replace("State=X", "x"), "not_scontrol"),
        (NODE.replace("CPUTot=8", "CPUTot=many"), "not_scontrol"),
    ],
)
def test_half_a_list_of_nodes_is_none(text: str, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        scontrol_text.read_nodes(text)
    assert caught.value.code == code


@pytest.mark.parametrize("text", ["", "n1|shared|idle|8\n", "n1|shared|odd|8|4000|(null)|(null)|\n", "a|b|\n" * 3])
def test_half_a_sinfo_is_none(text: str) -> None:
    with pytest.raises(FormatError):
        scontrol_text.read_sinfo(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "missing_columns"),
        ("Name|Priority\nnormal|1\n", "missing_columns"),
        (QOS.splitlines()[0], "empty_inventory"),
        (QOS.replace("tiny|", "ti|ny|"), "not_sacctmgr"),
        (QOS.replace("cpu=77", "cpu=many"), "not_sacctmgr"),
    ],
)
def test_half_a_list_of_qos_is_none(text: str, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        sacctmgr_text.read_qos(text)
    assert caught.value.code == code
