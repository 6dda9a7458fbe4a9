"""The fields of sacct(1) that are printed here, for allocations (`-X`), and what is kept of a job to print them.

Left out is what the site can change when a job has long ended (comments, `DerivedExitCode`), what belongs to steps, and
what nobody keeps as Slurm writes it. Widths as 22.05 has them, each compared with it in `tests/slurm`.
"""

from typing import Final, NamedTuple

# What is told of a job: times are seconds since 1970, null where Slurm knows none; a text is null where it is withheld.
# `is_sure`: whether accounting itself said it, and the queue says the same. `runs`: whether time goes on for it.
FACTS: Final = (
    "raw_id", "job_id", "array_job", "task", "user", "account", "partition", "qos", "name", "state", "cancelled_by",
    "exit_code", "exit_signal", "submit", "eligible", "start", "end", "elapsed_s", "limit_s", "nodes", "cpus",
    "node_list", "work_dir", "submit_line", "runs", "is_sure",
)  # fmt: skip


class AccountField(NamedTuple):
    """A field of `-o`: its header, and its width, below zero where its text stands to the left."""

    header: str
    width: int
    is_number: bool = False  # printed as a number is: to its own end, however narrow the column


FIELDS: Final = (
    AccountField("Account", 10),
    AccountField("AllocCPUS", 10, is_number=True),
    AccountField("CPUTime", 10),
    AccountField("CPUTimeRAW", 10, is_number=True),
    AccountField("Elapsed", 10),
    AccountField("ElapsedRaw", 10, is_number=True),
    AccountField("Eligible", 19),
    AccountField("End", 19),
    AccountField("ExitCode", 8),
    AccountField("JobID", -12),
    AccountField("JobIDRaw", -12),
    AccountField("JobName", 10),
    AccountField("NCPUS", 10, is_number=True),
    AccountField("NNodes", 8),
    AccountField("NodeList", 15),
    AccountField("Partition", 10),
    AccountField("QOS", 10),
    AccountField("Start", 19),
    AccountField("State", 10),
    AccountField("Submit", 19),
    AccountField("SubmitLine", 20),
    AccountField("Timelimit", 10),
    AccountField("TimelimitRaw", 10, is_number=True),
    AccountField("User", 9),
    AccountField("WorkDir", 20),
)
BY_NAME: Final = {field.header.lower(): field for field in FIELDS}
