"""From drafts to the records that Slurm's accounting would hold at `now`."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from random import Random
from typing import Any, Final

from portal.demo import cast, texts
from portal.demo.drafts import Draft
from portal.demo.plan import HUMAN, PARTITIONS
from telemetry.engine.slurm.records import NEVER_ASSIGNED, JobRecord

LAST_RAW_ID: Final = 48_213_951  # of the newest job at `now`
_SECRETS_A_BATCH: Final = 0.008
_REQUEUES_A_JOB: Final = 0.002
_BY_ROOT: Final = 0.04
_OLD_STYLE: Final = 0.1  # cancelled in the queue, with a start equal to the end, as older releases wrote it
_WAITS_FOR: Final = ("Priority", "Priority", "Resources", "Resources", "QOSMaxGRESPerUser", "Dependency")


def uid_of(login: str) -> int:
    """Return the numeric user id of a login name."""
    return 20_000 + int(login[1:])


def make_records(rng: Random, drafts: Sequence[Draft], now_s: int) -> list[JobRecord]:
    """Write the record of each job as it stands at `now_s`, in order of submission.

    What has not ended is running; what has not started is pending, an array's waiting tasks in one record.
    """
    ordered = sorted(drafts, key=lambda draft: (draft.batch.submit_s, draft.batch.login, draft.shape, draft.task))
    batches = [list(tasks) for _, tasks in groupby(ordered, key=lambda draft: (draft.batch, draft.shape))]
    raw_id = LAST_RAW_ID - sum(ids_needed(len(tasks)) for tasks in batches)
    records: list[JobRecord] = []
    for tasks in batches:
        records += _batch_records(rng, tasks, raw_id + 1, now_s)
        raw_id += ids_needed(len(tasks))
    return records


def ids_needed(size: int) -> int:
    """Return how many raw job ids a submission of `size` jobs takes: an array has one of its own."""
    return 1 if size == 1 else size + 1


def _batch_records(rng: Random, tasks: Sequence[Draft], base: int, now_s: int) -> Iterator[JobRecord]:
    common = common_facts(rng, tasks[0])
    if tasks[0].batch.size == 1:
        yield from _task_records(rng, tasks[0], common | {"raw_job_id": base, "job_id": str(base)}, now_s)
        return
    common["array_job_id"] = base
    waiting = [draft.task for draft in tasks if _is_waiting(draft, now_s)]
    for draft in tasks:
        if draft.task in waiting:
            continue
        # The last task takes over the number of the array itself, unless tasks are still waiting under it.
        own = base if draft is tasks[-1] and not waiting else base + 1 + draft.task
        ids = {"raw_job_id": own, "job_id": f"{base}_{draft.task}", "array_task": draft.task}
        yield from _task_records(rng, draft, common | ids, now_s)
    if waiting:
        ids = {"raw_job_id": base, "job_id": f"{base}_[{spans_text(waiting)}]", "array_tasks": len(waiting)}
        yield pending(rng, common | ids)


def _is_waiting(draft: Draft, now_s: int) -> bool:
    return draft.start_s > now_s


def spans_text(numbers: Sequence[int]) -> str:
    """Write sorted numbers as Slurm writes array tasks: 0-3,7."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def numbers_of(spans: str) -> list[int]:
    """Read array tasks as Slurm writes them: the inverse of `spans_text`."""
    ends = [part.partition("-") for part in spans.split(",")]
    return [number for first, _, last in ends for number in range(int(first), int(last or first) + 1)]


def common_facts(rng: Random, draft: Draft) -> dict[str, Any]:
    """Return the fields of a record that all jobs of a batch share."""
    shape, lab = draft.shape, cast.LAB_OF[draft.batch.login]
    name = texts.job_name(rng, draft)
    secret = rng.random() < _SECRETS_A_BATCH
    gpu_type = PARTITIONS[shape.partition].gpu_type
    campaign = draft.batch.campaign
    return {
        "user": draft.batch.login, "uid": uid_of(draft.batch.login), "account": lab.account, "group": lab.name,
        "cluster": cast.CLUSTER, "partition": shape.partition, "qos": shape.qos,
        "submit_s": draft.batch.submit_s, "eligible_s": draft.batch.submit_s, "timelimit_s": draft.limit_s,
        "nodes": shape.nodes, "cpus": shape.cpus, "req_cpus": shape.cpus, "gpus": shape.gpus,
        "gpu_types": (gpu_type,) if shape.gpus else (), "mem_bytes": shape.mem_gib * 2**30,
        "job_name": name, "work_dir": texts.work_dir(rng, draft, name), "campaign": campaign,
        "comment": f"campaign={campaign}" if campaign else "",
        "submit_line": texts.submit_line(rng, draft, name, with_secret=secret),
    }  # fmt: skip


def pending(rng: Random, common: dict[str, Any]) -> JobRecord:
    """Return the record of a job, or of an array's waiting tasks, that waits."""
    return JobRecord(**common, state="PENDING", node_list=NEVER_ASSIGNED, reason=rng.choice(_WAITS_FOR))


def _task_records(rng: Random, draft: Draft, common: dict[str, Any], now_s: int) -> Iterator[JobRecord]:
    if _is_waiting(draft, now_s):
        yield pending(rng, common)
    elif not draft.starts:
        yield _never_started(rng, draft, common)
    else:
        submit_s = draft.batch.submit_s
        if _can_requeue(draft) and rng.random() < _REQUEUES_A_JOB:
            submit_s += draft.wait_s // 2
            yield _lost_stretch(rng, draft, common, submit_s)
            common = common | {"submit_s": submit_s, "eligible_s": submit_s, "restarts": 1}
        yield _started(rng, draft, common, now_s)


def _never_started(rng: Random, draft: Draft, common: dict[str, Any]) -> JobRecord:
    start_s = draft.end_s if rng.random() < _OLD_STYLE else None
    return JobRecord(
        **common, state="CANCELLED", start_s=start_s, end_s=draft.end_s, node_list=NEVER_ASSIGNED,
        cancelled_by_uid=_canceller(rng, draft),
    )  # fmt: skip


def _canceller(rng: Random, draft: Draft) -> int:
    return 0 if rng.random() < _BY_ROOT else uid_of(draft.batch.login)


def _can_requeue(draft: Draft) -> bool:
    """Say whether the stretch before a requeue fits into the wait, while its submitter was surely there."""
    next_s = draft.batch.next_s
    if draft.wait_s < 240 or next_s is None or draft.batch.submit_s + draft.wait_s // 2 >= next_s:
        return False
    return draft.actor != HUMAN or draft.wait_s <= 600  # a shell may close five minutes after its last submission


def _lost_stretch(rng: Random, draft: Draft, common: dict[str, Any], end_s: int) -> JobRecord:
    start_s = draft.batch.submit_s + draft.wait_s // 4
    return JobRecord(
        **common, state=rng.choice(("REQUEUED", "NODE_FAIL", "PREEMPTED")), start_s=start_s, end_s=end_s,
        elapsed_s=end_s - start_s, started=True,
        node_list=texts.node_list(rng, draft.shape.partition, draft.shape.nodes),
    )  # fmt: skip


def _started(rng: Random, draft: Draft, common: dict[str, Any], now_s: int) -> JobRecord:
    nodes = texts.node_list(rng, draft.shape.partition, draft.shape.nodes)
    facts = {**common, "start_s": draft.start_s, "started": True, "node_list": nodes}
    if draft.end_s > now_s:
        return JobRecord(**facts, state="RUNNING", elapsed_s=now_s - draft.start_s)
    exit_code, exit_signal = exit_of(rng, draft.state)
    by = _canceller(rng, draft) if draft.state == "CANCELLED" else None
    return JobRecord(
        **facts, state=draft.state, end_s=draft.end_s, elapsed_s=draft.runtime_s, exit_code=exit_code,
        exit_signal=exit_signal, cancelled_by_uid=by,
    )  # fmt: skip


def exit_of(rng: Random, state: str) -> tuple[int, int]:
    """Draw an exit code and signal that fit a state."""
    if state == "FAILED":
        return rng.choice(((1, 0), (1, 0), (1, 0), (2, 0), (127, 0), (134, 0), (0, 11)))
    return {"OUT_OF_MEMORY": (0, 125), "CANCELLED": (0, 15), "NODE_FAIL": (1, 0)}.get(state, (0, 0))
