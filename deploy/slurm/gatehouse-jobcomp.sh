#!/bin/sh
# Tells of every end of a job. In slurm.conf, where JobCompType is not in use for something else:
#
#     JobCompType=jobcomp/script
#     JobCompLoc=/etc/slurm/gatehouse-jobcomp.sh
#
# slurmctld runs it as SlurmUser, one at a time. It never fails and waits for nothing.
trap 'exit 0' EXIT # also where the line below cannot be read
{
    . "${0%/*}/gatehouse-hook.sh" && gatehouse_spool jobcomp "$JOBID" JOBID ARRAYJOBID ARRAYTASKID JOBSTATE EXITCODE \
        SUBMIT START END NODECNT
} >/dev/null 2>&1 </dev/null
exit 0
