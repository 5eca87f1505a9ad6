#!/bin/bash
# Submits a sweep as a SLURM job array, and a job behind it that merges the shards and computes the frontier:
#
#     scenarios/sweeps/slurm-array.sh SWEEP_FILE DIR [SHARDS] [sbatch options, e.g. --partition=cpu --time=02:00:00]
#
# DIR has to lie on a file system that all nodes see. Each task of the array runs one shard. Tasks may be preempted,
# killed, requeued and run in any order: finished blocks are in DIR and are not run again.
#
# When `millrace merge` reports missing blocks, submit the same again with the same SHARDS: only what is missing is run.
# An adaptive sweep ("replications": {"least": ..., "most": ..., "budget": ...}, or "refine") has rounds, of which each
# needs the rows of all shards of the one before. A shard begins the next round when it finds them; otherwise merge says that another
# round is needed, and the same submission runs it.
set -euo pipefail

if [ $# -lt 2 ]; then
    sed -n '2,4s/^# \?//p' "$0" >&2
    exit 2
fi
sweep=$(realpath "$1")
dir=$(realpath "$2")
shards=${3:-16}
shift $(($# < 3 ? $# : 3))
millrace=$(command -v "${MILLRACE:-millrace}")
threads=${THREADS:-4}

# The number of shards stands in the command: SLURM_ARRAY_TASK_COUNT is another one when only some tasks are submitted
# again. A minute before the time limit SLURM asks with SIGTERM, and millrace stops in good order.
array=$(sbatch --parsable --job-name=millrace --array="1-$shards" --cpus-per-task="$threads" --requeue \
    --signal=TERM@60 "$@" --wrap \
    "exec srun $(printf '%q ' "$millrace" sweep "$sweep" --out "$dir" --quiet --jobs "$threads")--shard \"\$SLURM_ARRAY_TASK_ID/$shards\"")
array=${array%%;*}
sbatch --job-name=millrace-merge --dependency="afterany:$array" "$@" --wrap \
    "$(printf '%q ' "$millrace" merge "$dir")&& $(printf '%q ' "$millrace" pareto "$dir")"
