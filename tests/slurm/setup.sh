#!/usr/bin/env bash
# A real Slurm on this machine, one node, fake GPUs, everything in one scratch folder: what the suite beside this runs on.
#   tests/slurm/setup.sh start FOLDER     installs slurm-wlm and munge if need be (as root, Debian), starts the daemons
#   tests/slurm/setup.sh stop FOLDER      ends exactly those
# Then: export SLURM_CONF=FOLDER/slurm.conf
set -euo pipefail
action=${1:?start or stop} folder=$(realpath -m "${2:?a scratch folder}")
host=$(hostname -s)

if [ "$action" = stop ]; then
    for name in slurmd slurmctld munged; do
        [ ! -s "$folder/$name.pid" ] || kill "$(cat "$folder/$name.pid")" 2>/dev/null || true
    done
    exit 0
fi

if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurm-wlm munge >/dev/null
fi
mkdir -p "$folder"/{state,spool,log,gpus}
for n in 0 1 2 3 4 5 6 7; do touch "$folder/gpus/gpu$n"; done

# munge wants its folder to be its own, and a socket that every user reaches: munged's own user is not needed for that.
[ -s "$folder/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
chmod 755 "$folder"
ports=$(python3 -c 'import socket; a, b = socket.socket(), socket.socket(); a.bind(("", 0)); b.bind(("", 0)); print(a.getsockname()[1], b.getsockname()[1])')

cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobRequeue=1
KillWait=${KILL_WAIT:-60}
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=$host CPUs=64 RealMemory=64000 Gres=gpu:8 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP
CONF
echo "NodeName=$host Name=gpu File=$folder/gpus/gpu[0-7]" >"$folder/gres.conf"

export SLURM_CONF=$folder/slurm.conf
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/log/munged.log" --seed-file="$folder/munge.seed" --num-threads=2
slurmctld
slurmd
for _ in $(seq 60); do
    [ "$(sinfo -h -o %T 2>/dev/null)" != idle ] || exit 0
    sleep 0.5
done
sinfo -R >&2
tail -n 20 "$folder"/log/*.log >&2
exit 1
