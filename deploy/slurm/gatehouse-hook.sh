#!/bin/sh
# Read by the three hooks beside it; does nothing by itself. Writes one file into the spool of `gatehouse eventd`:
# NAME=value and a NUL for each variable, written by the shell itself, so that no value is ever read as anything.
#
# It takes ids, states and times of Slurm's own and nothing else: no job name, no command, no environment of anybody's.
# One program is started (mv), and only where the spool is in use. Whatever fails, the hook ends with 0 and nothing is
# lost that the reader of accounting does not find. `touch /etc/slurm/gatehouse-hooks.off` ends it at once.

spool=${GATEHOUSE_EVENT_SPOOL:-/var/spool/gatehouse-events} # another one for a try by hand
most=2048 # files: eventd takes them away at once, also when the portal does not answer

gatehouse_spool() { # KIND JOB NAME...
    [ -w "$spool/new" ] && [ ! -e /etc/slurm/gatehouse-hooks.off ] || return 0
    kind=$1 job=$2
    shift 2
    case $job in '' | *[!0-9]*) return 0 ;; esac
    names=$*
    set +f
    set -- "$spool"/new/*
    [ $# -lt $most ] || return 0
    set -f
    umask 077
    PATH=/usr/bin:/bin
    file=$kind-$job-$$
    half=$spool/half/$file
    {
        printf 'HOOK=%s\0' "$kind"
        for name in $names; do
            eval "value=\${$name-}"
            [ -z "$value" ] || printf '%s=%s\0' "$name" "$value"
        done
        printf 'DONE=1\0'
    } >"$half" || { # no room for it: half a file is none
        rm -f "$half"
        return 0
    }
    while [ -e "$spool/new/$file" ]; do file=$file-; done
    mv -f "$half" "$spool/new/$file"
    return 0
}
