#!/usr/bin/env bash
# One role of a job on one of its nodes; srun starts it:  role.sh server|trainers|task NAME FOLDER GPUS PORT COMMAND...
#
# Takes of the job's GPUs those at the places GPUS ("4,5"; empty without GPUs) and, from PORT on, the first port that is
# free on this node, and tells both in FOLDER/NAME.address. A server is run with --host and --port behind its command;
# in trainers' commands @RANK@, @HOST@ and @PORT@ stand for this node's place and for where the first of them listens.
# Ends with 75 if Slurm asked for an end and the command came to it before its own, else as the command did.
set -euo pipefail
kind=$1 name=$2 folder=$3 gpus=$4 port=$5
shift 5
[ -z "${VENV:-}" ] || . "$VENV/bin/activate"

if [ -n "$gpus" ]; then
    IFS=, read -ra given <<<"${CUDA_VISIBLE_DEVICES:-}"
    chosen=()
    for place in ${gpus//,/ }; do chosen+=("${given[place]:-$place}"); done
    CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${chosen[*]}")
    export CUDA_VISIBLE_DEVICES
fi

# A folder that many nodes see is where an address is told; it appears whole or not at all.
address=$folder/$name.address rank=${SLURM_NODEID:-0}
if [ "$kind" = server ] || [ "$rank" = 0 ]; then
    port=$(python - "$port" <<'PY'
import socket, sys
for port in range(int(sys.argv[1]), 65536):
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
        except OSError:
            continue
        print(port)
        break
PY
    )
    echo "${SLURMD_NODENAME:-$(hostname)}:$port" >"$address.part" && mv "$address.part" "$address"
fi
until [ -s "$address" ]; do sleep 1; done

told=
trap 'told=1' TERM
if [ "$kind" = server ]; then
    "$@" --host 0.0.0.0 --port "$port" &
elif [ "$kind" = task ]; then
    "$@" &
else
    IFS=: read -r host port <"$address"
    words=("${@//@RANK@/$rank}")
    words=("${words[@]//@HOST@/$host}")
    # Launchers must outlive the signal that their workers save after: they would end them, or leave them behind.
    (trap '' TERM && exec "${words[@]//@PORT@/$port}") &
fi
child=$! status=0
while :; do
    status=0
    wait "$child" || status=$?
    kill -0 "$child" 2>/dev/null || break # the signal alone has ended the wait
done
[ -z "$told" ] || { [ "$status" = 0 ] && [ "$kind" = trainers ]; } || status=75
exit "$status"
