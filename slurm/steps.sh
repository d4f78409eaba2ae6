# What the jobs of this folder share; sourced by them. Set the variables when you submit: VENV=/path sbatch ...
# A job sets folder (for logs and addresses) and gpus (of a node) before it starts a step.
VENV=${VENV-$PWD/.venv}             # the environment, on a disk that all nodes see; unused in a container
START_LIMIT=${START_LIMIT:-1800}    # seconds in which a server must answer: a large model loads for minutes
SAVE_LIMIT=${SAVE_LIMIT:-300}       # seconds that training gets to save when a server has died
CONTAINER=()                        # with pyxis: CONTAINER_IMAGE=/path/to/image.sqsh
if [ -n "${CONTAINER_IMAGE:-}" ]; then
    VENV=
    CONTAINER=(--container-image="$CONTAINER_IMAGE" --container-workdir="$PWD"
        --container-mounts="$PWD:$PWD,${HF_HOME:-$HOME/.cache/huggingface}:${HF_HOME:-$HOME/.cache/huggingface}")
elif [ -n "$VENV" ]; then
    . "$VENV/bin/activate"
fi
export VENV

alone() { # a short command on the first node, in the container if there is one
    if [ ${#CONTAINER[@]} -gt 0 ]; then srun --overlap --nodes=1 --ntasks=1 "${CONTAINER[@]}" "$@"; else "$@"; fi
}

declare -A pids=() ended=()
told=

role() { # role KIND NAME NODES GPUS PORT COMMAND...: a step of its own, in the background
    local kind=$1 name=$2 nodes=$3
    shift 3
    srun --overlap --job-name="$name" --nodelist="$nodes" --nodes="$(awk -F, '{print NF}' <<<"$nodes")" \
        --ntasks-per-node=1 --mem=0 ${SLURM_GPUS_ON_NODE:+--gpus-per-node=$gpus} "${CONTAINER[@]}" \
        --output="$folder/$name.log" --open-mode=append bash slurm/role.sh "$kind" "$name" "$folder" "$@" \
        2>>"$folder/$name.log" & # what srun itself has to say
    pids[$name]=$!
}
running() { # running NAME: or its status is in ended[NAME]
    [ -z "${ended[$1]:-}" ] || return 1
    ! kill -0 "${pids[$1]}" 2>/dev/null || return 0
    ended[$1]=0
    wait "${pids[$1]}" || ended[$1]=$?
    return 1
}
tell() { # tell NAME: the step of that name is sent SIGTERM; srun itself would take the step down with it
    local step
    step=$(squeue --steps --noheader --jobs="$SLURM_JOB_ID" --format='%i %j' | awk -v name="$1" '$2 == name {print $1}')
    [ -z "$step" ] || scancel --signal=TERM "$step" || true
}
finish() { # finish STATUS: end what this job has started, and nothing else
    trap '' TERM
    for name in "${!pids[@]}"; do ! running "$name" || tell "$name"; done
    for name in "${!pids[@]}"; do
        for _ in $(seq 20); do running "$name" && sleep 1 || break; done
        ! running "$name" || kill "${pids[$name]}" 2>/dev/null || true # srun, which takes its step down
    done
    exit "$1"
}
died() { # died NAME WHAT: say so with its last words; what was learnt is saved
    echo "$1 $2: $folder/$1.log ends with" >&2
    tail -n 20 "$folder/$1.log" | sed 's/^/    /' >&2
    if [ -n "${pids[trainers]:-}" ] && [ "$1" != trainers ] && running trainers; then
        echo "training saves its last step and ends" >&2
        tell trainers
        for _ in $(seq "$SAVE_LIMIT"); do running trainers && pause 1 || break; done
    fi
    finish 1
}
pause() { sleep "$1" & wait $! || true; } # so that a signal is heard at once
await() { # await NAME PATH: until the server answers there; sets url
    local name=$1 until=$((SECONDS + START_LIMIT))
    until [ -s "$folder/$name.address" ] && url=http://$(cat "$folder/$name.address") && answers "$url$2"; do
        [ -z "$told" ] || requeue
        running "$name" || died "$name" "ended while it started (status ${ended[$name]})"
        [ "$SECONDS" -lt "$until" ] || died "$name" "gave no answer within $START_LIMIT s"
        pause 2
    done
}
answers() {
    python3 -c 'import sys, urllib.request as u; u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=5)' "$1" 2>/dev/null
}
