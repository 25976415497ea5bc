#!/bin/bash
# One run as a Slurm job, without submitit: sbatch examples/slurm_run.sh outputs/mine/seed=0 env=gridworld seed=0
#SBATCH --job-name=cfn
#SBATCH --time=24:00:00
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@120
# USR1 reaches job steps only: the run must be started with srun. The run saves and exits with 128 + signal number.
folder=$1
shift
srun cfn train "hydra.run.dir='$folder'" "$@"
code=$?
# 138: the time limit was near (USR1). 137: killed on the node. 143 (TERM) of a job that still runs: it is preempted.
task=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
state=$(squeue --noheader --array --jobs="$task" --format=%T)
if [ $code -eq 138 ] || { [ $code -eq 137 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; } ||
    { [ $code -eq 143 ] && [ "$state" = RUNNING ]; }; then
    scontrol requeue "$task" # the restarted job continues the run in the same folder
fi
exit $code
