#!/bin/sh
# Tells that a job started, ended or is in the queue again, where it asked for mail (sbatch --mail-type), and hands the
# mail on to the site's own mail program. In slurm.conf:
#
#     MailProg=/etc/slurm/gatehouse-mail.sh
#
# The mail program is the one that /etc/slurm/gatehouse-mailprog names, a path on one line; without it /bin/mail, which is
# Slurm's own default; with an empty file there no mail is sent. It gets the arguments, the environment and the standard
# input that Slurm gave, and what it ends with is what this ends with. Nothing of the mail itself is kept: it holds the
# job's name.
(
    case ${SLURM_JOB_MAIL_TYPE-} in
    Began | Ended | Failed | Requeued)
        . "${0%/*}/gatehouse-hook.sh" && gatehouse_spool mail "$SLURM_JOB_ID" SLURM_JOB_ID SLURM_ARRAY_JOB_ID \
            SLURM_ARRAY_TASK_ID SLURM_JOB_RESTART_COUNT SLURM_JOB_MAIL_TYPE SLURM_JOB_STATE
        ;;
    esac
) >/dev/null 2>&1 </dev/null

program=/bin/mail
if [ -e "${GATEHOUSE_MAILPROG_FILE:-/etc/slurm/gatehouse-mailprog}" ]; then
    program=
    read -r program <"${GATEHOUSE_MAILPROG_FILE:-/etc/slurm/gatehouse-mailprog}" 2>/dev/null
fi
[ -n "$program" ] && [ -x "$program" ] && exec "$program" "$@"
exit 0
