#!/bin/sh
# Tells that a job gave its nodes back: accounting is then asked whether it ended or is in the queue again. In slurm.conf:
#
#     EpilogSlurmctld=/etc/slurm/gatehouse-epilog-slurmctld.sh
#
# A site with one of its own calls this from there. slurmctld runs it as SlurmUser, many at a time. It never fails and
# waits for nothing.
trap 'exit 0' EXIT # also where the line below cannot be read
{
    . "${0%/*}/gatehouse-hook.sh" && gatehouse_spool epilog "$SLURM_JOB_ID" SLURM_JOB_ID SLURM_ARRAY_JOB_ID \
        SLURM_ARRAY_TASK_ID SLURM_JOB_RESTART_COUNT SLURM_JOB_EXIT_CODE SLURM_JOB_EXIT_CODE2 SLURM_JOB_START_TIME \
        SLURM_JOB_END_TIME
} >/dev/null 2>&1 </dev/null
exit 0
