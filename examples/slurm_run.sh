#!/bin/bash
# One run as a Slurm job, without submitit: sbatch examples/slurm_run.sh outputs/mine/seed=0 env=gridworld seed=0
#SBATCH --job-name=cfn
#SBATCH --time=24:00:00
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@120
# USR1 reaches job steps only: the run must be started with srun. The run saves and exits with 128 + signal number.
folder=${1:?usage: sbatch slurm_run.sh FOLDER [key=value ...]}
shift
srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" cfn train "hydra.run.dir='$folder'" "$@"
code=$?
task=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
case $code in
138) again=yes ;; # USR1: the time limit was near, or the job is preempted
143)              # TERM: of a job that has not ended, a preemption; else it was cancelled
    state=$(squeue --noheader --array --jobs="$task" --format=%T)
    if [ "$state" = RUNNING ] || [ "$state" = SIGNALING ]; then again=yes; fi ;;
137) # killed on its node, out of memory for example: three more attempts
    mkdir -p "$folder" && date >> "$folder/kills.txt"
    if [ "$(wc -l < "$folder/kills.txt")" -le 3 ]; then again=yes; fi ;;
esac
if [ "$again" = yes ]; then scontrol requeue "$task"; fi # the restarted job continues the run in the same folder
exit $code
