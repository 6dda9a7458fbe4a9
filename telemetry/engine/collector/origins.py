"""Where a process came from, as far as two more files of `/proc` tell: the job that it runs in (cgroups(7)), and
whether an agent's variable is set (proc_pid_environ(5)).

Slurm gives each job a control group. Its path holds the job's number, but for Slurm 26.05 and later on version 2 of
control groups, where it holds the SLUID unless `CgroupJobIdPaths=yes` is set: then all that is known is that it is one.
"""

import re
from collections.abc import Sequence
from typing import Final

NOT_ASKED: Final = -1  # of the process that it descends from the same is true
NO_JOB: Final = 0
UNTOLD: Final = -2  # in a job, and in which is not told
LARGEST_JOB: Final = 2**32 - 1

# /slurm/uid_1000/job_7/step_0/task_0; with several daemons on a node: /slurm_node1/uid_1000/...
_FIRST: Final = re.compile(rb"/slurm(?:_[^/]+)?/uid_\d+/job_(\d+)(?:/|$)")
# /system.slice/slurmstepd.scope/job_7/step_batch/user/task_0; /system.slice/node1_slurmstepd.scope/s5K1KKYAYG5D00/...
_SECOND: Final = re.compile(rb"/(?:[^/]+_)?slurmstepd\.scope/(?!system(?:/|$))(?:job_(\d+)|[^/]+)(?:/|$)")
_A_USERS: Final = b"/user.slice/"  # groups below it are made and named by whom they belong to


def job_of(cgroup: bytes) -> int:
    """Return the raw id of the job that a process's `cgroup` file tells, `NO_JOB` or `UNTOLD`."""
    is_told = False
    for line in cgroup.split(b"\n"):
        path = line.split(b":", 2)[-1]
        found = None if _A_USERS in path else _FIRST.search(path) or _SECOND.search(path)
        if found is None:
            continue
        is_told = True
        digits = found[1] or b""
        if digits and len(digits) <= len(str(LARGEST_JOB)) and 0 < int(digits) <= LARGEST_JOB:
            return int(digits)
    return UNTOLD if is_told else NO_JOB


def marker_of(environ: bytes, names: Sequence[bytes]) -> int:
    """Return the place, from 1 on, of the first of some names that an environment holds; 0 for none. Names are looked
    for as they stand: to take apart what somebody filled with empty entries costs more."""
    entries = b"\0" + environ
    return next((place for place, name in enumerate(names, 1) if b"\0%b=" % name in entries), 0)
