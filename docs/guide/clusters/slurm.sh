#!/bin/bash
#SBATCH --job-name=redline
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
# One host for the server and the others for the load, on nodes of their own: `sbatch slurm.sh SUITE`. The lab runs
# beside the server's Ray, which costs it a little. See ../many-machines.md.
#
# Redline is in ~/redline (`make build`, `uv sync --extra ray`), on a file system that all nodes see.
set -euo pipefail
redline=~/redline/.venv/bin
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
umask 077
"$redline/ray" get-auth-token --generate > /dev/null

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address | cut -d' ' -f1)
trap 'kill $(jobs -p) 2> /dev/null' EXIT

srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" "$redline/ray" start --head --block --node-ip-address="$head" \
  --port=6379 --include-dashboard=false --resources='{"server": 1}' &
until (exec 3<> "/dev/tcp/$head/6379") 2> /dev/null; do sleep 1; done
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 --nodelist="$node" "$redline/ray" start --block --address="$head:6379" \
    --resources='{"load": 1}' &
done
until "$redline/redline" doctor --hosts "$head:6379" --json > /dev/null; do sleep 2; done
srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" "$redline/redline" run "$1" --on "$head:6379"
