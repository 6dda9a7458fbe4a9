"""The fields of squeue(1) that are printed here: of every job one text of each is kept, and cut when it is printed.

Sources: squeue(1), `-o` and `-O`; headers and cuts as 22.05 prints them, each compared with it in `tests/slurm`.
"""

from enum import Enum, auto
from typing import Final, NamedTuple


class Kind(Enum):
    """What is done to a kept text before it is laid out."""

    TEXT = auto()
    TIME = auto()  # kept as seconds since 1970, printed in the zone of whoever asks
    USED = auto()  # grows while a job runs: kept where it stands still, "" where it is counted from the start
    LEFT = auto()  # not kept: the limit less what is used


class Field(NamedTuple):
    """One field. `is_cut`: whether a text that is longer than its column is cut where it is set to the right.

    A header is, but for those of lists of nodes.
    """

    key: str  # the name of `-O`, in small letters
    letter: str  # of `-o`, "" where it has none
    header: str
    is_cut: bool = True
    kind: Kind = Kind.TEXT


FIELDS: Final = (
    Field("account", "a", "ACCOUNT"),
    Field("jobid", "A", "JOBID"),
    Field("tres-per-node", "b", "TRES_PER_NODE"),
    Field("batchhost", "B", "EXEC_HOST"),
    Field("mincpus", "c", "MIN_CPUS"),
    Field("numcpus", "C", "CPUS"),
    Field("numnodes", "D", "NODES"),
    Field("endtime", "e", "END_TIME", kind=Kind.TIME),
    Field("dependency", "E", "DEPENDENCY"),
    Field("feature", "f", "FEATURES"),
    Field("arrayjobid", "F", "ARRAY_JOB_ID"),
    Field("jobarrayid", "i", "JOBID"),
    Field("name", "j", "NAME"),
    Field("comment", "k", "COMMENT"),
    Field("arraytaskid", "K", "ARRAY_TASK_ID"),
    Field("timelimit", "l", "TIME_LIMIT", is_cut=False),
    Field("timeleft", "L", "TIME_LEFT", is_cut=False, kind=Kind.LEFT),
    Field("minmemory", "m", "MIN_MEMORY"),
    Field("timeused", "M", "TIME", is_cut=False, kind=Kind.USED),
    Field("nodelist", "N", "NODELIST", is_cut=False),
    Field("command", "o", "COMMAND"),
    Field("partition", "P", "PARTITION"),
    Field("qos", "q", "QOS"),
    Field("prioritylong", "Q", "PRIORITY"),
    Field("reason", "r", "REASON"),
    Field("reasonlist", "R", "NODELIST(REASON)", is_cut=False),
    Field("starttime", "S", "START_TIME", kind=Kind.TIME),
    Field("statecompact", "t", "ST"),
    Field("state", "T", "STATE"),
    Field("username", "u", "USER"),
    Field("userid", "U", "UID"),
    Field("reservation", "v", "RESERVATION"),
    Field("submittime", "V", "SUBMIT_TIME", kind=Kind.TIME),
    Field("nice", "y", "NICE"),
    Field("workdir", "Z", "WORK_DIR"),
    Field("numtasks", "", "TASKS"),
    Field("restartcnt", "", "RESTART_COUNT"),
    Field("tres-alloc", "", "TRES_ALLOC"),
)
WHOLE_HEADERS: Final = frozenset({"nodelist", "reasonlist"})
BY_KEY: Final = {field.key: field for field in FIELDS}
BY_LETTER: Final = {field.letter: field for field in FIELDS if field.letter}
KEYS: Final = tuple(field.key for field in FIELDS if field.kind is not Kind.LEFT)  # what is kept, in this order
NULL: Final = "(null)"  # what C prints for no text
