"""Why Slurm keeps a job waiting, in plain words (squeue(1), "JOB REASON CODES")."""

from typing import Final

_EXACT: Final = {
    "Priority": "Other jobs are ahead of it",
    "Resources": "Next in line, waits for free nodes",
    "Dependency": "Waits for another job",
    "DependencyNeverSatisfied": "Waits for a job that will never end as asked",
    "BeginTime": "Asked to start later",
    "JobHeldUser": "Held by its user",
    "JobHeldAdmin": "Held by staff",
    "JobArrayTaskLimit": "Its array runs as many tasks as it allows",
    "Licenses": "Waits for a licence",
    "Reservation": "Waits for its reservation",
    "ReservationDeleted": "Its reservation is gone",
    "PartitionDown": "Its partition is down",
    "PartitionInactive": "Its partition is closed",
    "PartitionNodeLimit": "Asks for more nodes than its partition gives",
    "PartitionTimeLimit": "Asks for more time than its partition gives",
    "BadConstraints": "No node can be what it asks for",
    "InvalidAccount": "Its account is not valid",
    "InvalidQOS": "Its QoS is not valid",
    "NodeDown": "A node it needs is down",
    "JobLaunchFailure": "Its launch failed",
    "launch failed requeued held": "Its launch failed; held",
    "Cleaning": "Put back in the queue, still being cleaned up",
    "None": "Not yet considered by the scheduler",
    "": "",
}
_HOLDERS: Final = {"QOS": "QoS", "Assoc": "account"}
_THINGS: Final = (
    ("GRES", "GPU"), ("Gres", "GPU"), ("Cpu", "core"), ("CPU", "core"), ("Mem", "memory"), ("Node", "node"),
    ("Jobs", "job"), ("Job", "job"), ("Submit", "job"), ("Wall", "time"), ("Billing", "billing"), ("Energy", "energy"),
)  # fmt: skip


def explain_reason(reason: str) -> str:
    """Say why a job waits; a code that we do not know stays as Slurm wrote it."""
    code = reason.strip().strip("()").partition(",")[0].strip()
    if code in _EXACT:
        return _EXACT[code]
    if code.startswith("ReqNodeNotAvail"):
        return "Nodes that it names are not free to use"
    for start, holder in _HOLDERS.items():
        if code.startswith(start):
            thing = next((word for mark, word in _THINGS if mark in code), "")
            return f"Limit of its {holder} reached{f' ({thing})' if thing else ''}"
    return code
