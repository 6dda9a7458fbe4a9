"""A stored job as the record that it came from, for a change that says of the rest nothing new."""

from datetime import datetime
from typing import Any

from telemetry.engine.slurm.job_ids import parse_job_id
from telemetry.engine.slurm.records import JobRecord
from telemetry.models import Job
from telemetry.services.attribution import OWN_CAMPAIGN


def record_of(job: Job) -> JobRecord:
    """Return the record of which `rows.make_row` makes this row; `job` with its login name, account, lab and cluster.

    What no column holds (the cores that were asked for, the user's number) is not in it.
    """
    extra: dict[str, Any] = dict(job.extra)
    campaign, comment = extra.pop(OWN_CAMPAIGN, ""), extra.pop("Comment", "")
    gpu_types = tuple(extra.pop("gpu_types", ()))
    parsed = parse_job_id(job.job_id)
    return JobRecord(
        raw_job_id=job.raw_id, job_id=job.job_id, user=job.cluster_user.login, state=job.state,
        submit_s=int(job.submit.timestamp()), eligible_s=seconds(job.eligible), start_s=seconds(job.start),
        end_s=seconds(job.end), elapsed_s=job.elapsed_s, timelimit_s=job.timelimit_s, array_job_id=job.array_job_id,
        array_task=parsed.array_task, array_tasks=job.array_tasks, het_offset=parsed.het_offset, nodes=job.nodes,
        cpus=job.cpus, gpus=job.gpus, gpu_types=gpu_types, mem_bytes=job.mem_bytes,
        cancelled_by_uid=job.cancelled_by_uid, exit_code=job.exit_code or 0, exit_signal=job.exit_signal or 0,
        restarts=job.restarts, started=job.start is not None, campaign=campaign,
        account=job.account.name if job.account else "", group="" if job.account else job.lab.name,
        cluster=job.cluster.name, partition=job.partition, qos=job.qos, node_list=job.node_list,
        job_name=job.job_name, submit_line=job.submit_line, work_dir=job.work_dir, reason=job.reason, comment=comment,
        extra=extra,
    )  # fmt: skip


def seconds(instant: datetime | None) -> int | None:
    """Return an instant as seconds since 1970."""
    return None if instant is None else int(instant.timestamp())
