#!/bin/sh
#
# SPDX-License-Identifier: Apache-2.0

# Machine/job features (HSF-TN-2016-02) for jobs of Slurm. In slurm.conf:
#
#   TaskProlog=/usr/share/nova-fairness/slurm-job-features.sh
#   Epilog=/usr/share/nova-fairness/slurm-job-features.sh
#
# The first is run as the job's user, and what it writes becomes the job's
# environment; the second as root, and it removes what the first made.

# [fairness_partition] features_path, as this node sees it.
machines=${NOVA_FAIRNESS_FEATURES:-/var/lib/nova-fairness/features}

job=/tmp/nova-fairness-job-$SLURM_JOB_ID

# seconds [DAYS-][[HOURS:]MINUTES:]SECONDS; nothing for UNLIMITED.
seconds() {
    echo "$1" | awk -F '[-:]' '/^[0-9:-]+$/ {
        days = 0; first = 1
        if ($0 ~ /-/) { days = $1; first = 2 }
        total = 0
        for (i = first; i <= NF; i++) total = total * 60 + $i
        print days * 86400 + total }'
}

tell() {
    began=$(date +%s)
    mkdir -m 0755 "$job" 2>/dev/null || return 0
    echo "$SLURM_JOB_ID" >"$job/job_id"
    echo "${SLURM_CPUS_ON_NODE:-1}" >"$job/allocated_cpu"
    echo "$began" >"$job/jobstart_secs"
    limit=$(seconds "$(squeue -hj "$SLURM_JOB_ID" -o %l | head -n 1)")
    if [ -n "$limit" ]; then
        echo "$limit" >"$job/wall_limit_secs"
        echo $((began + limit)) >"$job/shutdowntime_job"
    fi
}

case $SLURM_SCRIPT_CONTEXT in
    prolog_task)
        tell
        echo "export MACHINEFEATURES=$machines/$SLURMD_NODENAME"
        # Nobody else's: others may write to /tmp, too.
        [ -O "$job" ] && echo "export JOBFEATURES=$job"
        ;;
    epilog_slurmd) rm -rf "$job" ;;
esac
exit 0
