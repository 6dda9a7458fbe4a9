"""What only all jobs of a period together tell, of a whole facility."""

from typing import Final

from telemetry.engine.period_study import AFTER_S, SCHEMA, PeriodStudy, Study
from telemetry.models import Job
from telemetry.selectors.job_frames import job_frames
from telemetry.selectors.scope import Scope

_ROWS: Final = 50_000
_COLUMNS: Final = (
    "cluster_user_id", "actor", "state", "submit", "start", "end", "restarts", "array_tasks", "job_name", "work_dir",
    "submit_line", "harness", "mem_bytes", "exit_code", "exit_signal",
)  # fmt: skip


def study(scope: Scope) -> Study:
    """Look at every job of the period once; one query. A minute for some million jobs: nothing for a page."""
    lo, hi = int(scope.period.starts.timestamp()), int(scope.period.ends.timestamp())
    jobs = Job.objects.visible_to(scope.actor).filter(cluster=scope.cluster).order_by().values_list(*_COLUMNS)
    if scope.lab:
        jobs = jobs.filter(lab=scope.lab)
    submitted = jobs.filter(submit__gte=lo, submit__lt=hi + AFTER_S)
    ended = jobs.filter(usage_end__gte=lo, usage_end__lt=hi, end__isnull=False, submit__lt=lo)
    found = PeriodStudy(lo, hi)
    for frame in job_frames(submitted.union(ended, all=True), SCHEMA, rows=_ROWS):
        found.add(frame)
    return found.finish()
