#!/bin/sh
# A collector for each job, where none should run on compute nodes all the time. In slurm.conf:
#
#     Prolog=/etc/slurm/prolog.d/gatehouse-prolog.sh
#     Epilog=/etc/slurm/epilog.d/gatehouse-epilog.sh
#     PrologFlags=Alloc
#
# slurmd runs it as root. The collector is a unit of its own, outside the job's control group: it takes nothing of what the
# job was given, and the job's end does not kill it before it has sent what it has. It looks at the processes of the job's
# person alone, and of those at none that is in another job. Not for nodes on which gatehouse-collect.service runs.
#
# It never fails: Slurm drains a node whose prolog does.
PATH=/usr/bin:/bin
[ -e /etc/gatehouse/collect.off ] && exit 0
systemd-run --quiet --collect --no-block --unit="gatehouse-collect-$SLURM_JOB_ID" \
    --description="Gatehouse collector of job $SLURM_JOB_ID" \
    --setenv=SLURM_JOB_ID="$SLURM_JOB_ID" --setenv=SLURM_JOB_UID="$SLURM_JOB_UID" \
    --property=User=gatehouse --property=Group=gatehouse \
    --property=AmbientCapabilities=CAP_SYS_PTRACE --property=CapabilityBoundingSet=CAP_SYS_PTRACE \
    --property=NoNewPrivileges=yes --property=StateDirectory=gatehouse-collect --property=UMask=0077 \
    --property=ProtectSystem=strict --property=ProtectHome=yes --property=PrivateTmp=yes \
    --property=KillMode=mixed --property=TimeoutStopSec=20 \
    --property=CPUQuota=10% --property=Nice=10 --property=MemoryMax=250M \
    /opt/gatehouse/bin/gatehouse collect --in-job --config /etc/gatehouse/collect.toml >/dev/null 2>&1
exit 0
