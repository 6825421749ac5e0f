#!/bin/sh
# Runs the files of an image as a container is run: process 1 of its own namespaces, on a read-only root, as user
# 10001 without capabilities or a way to get any, in 256 MiB where the kernel lets us say so.
#
# Usage: docker/image/run.sh FOLDER CONFIG WORK
set -eu
files=$1 config=$2 work=$3
root=$work/root volume=$work/volume
fail() { echo "image-test: $*" >&2; [ ! -e "$work/log" ] || tail -20 "$work/log" >&2; exit 1; }
say() { echo "image-test: $*"; }

# ---- A container

# group: a cgroup of v1 or v2 whose memory ends at 256 MiB; empty if none can be made.
limit=$((256 << 20)) group=
for top in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -e "$top/cgroup.procs" ] || continue
    folder=$top/kldiv-image-$$
    mkdir "$folder" 2>/dev/null || continue
    for file in memory.limit_in_bytes memory.max; do
        [ -e "$folder/$file" ] && echo $limit > "$folder/$file" && group=$folder
    done
    [ -n "$group" ] && break
    rmdir "$folder"
done
[ -n "$group" ] || say "no memory limit: no cgroup with one can be made here; --max-memory stands in"

runner='' server=''
end() {
    [ -z "$runner" ] || kill -KILL $server "$runner" 2>/dev/null || true
    wait
    [ -z "$group" ] || rmdir "$group" 2>/dev/null || { sleep 1; rmdir "$group"; } || true
}
trap end EXIT

# The environment that the image sets, and nothing of ours.
environment=$(jq -r '.Docker.config.Env[] | @sh' "$config" | tr '\n' ' ')

# Starts the server. MOUNT is a command that mounts what lies at /var/lib/kldiv; $@ are the server's flags.
start() {
    mount=$1
    shift
    cat > "$work/inside" << END
set -e
mount --make-rprivate /
mount --bind "$files" "$root" && mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc" -o nosuid,nodev,noexec
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup" && mount -o remount,bind,ro "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/dev" -o mode=755 && touch "$root/dev/null" && mount --bind /dev/null "$root/dev/null"
$mount
ip link set lo up
exec env -i $environment $(command -v capsh) --chroot="$root" --drop=all --groups= --gid=10001 --uid=10001 --no-new-privs \
    --shell=/usr/bin/kldivd -- "\$@"
END
    (
        [ -z "$group" ] || echo 0 > "$group/cgroup.procs"
        exec unshare --pid --mount --net --ipc --uts --fork --kill-child sh "$work/inside" "$@"
    ) > "$work/log" 2>&1 &
    runner=$!
    for _ in $(seq 100); do
        server=$(pgrep -P $runner) && grep -q 'kldivd' "/proc/$server/comm" && healthy 2>/dev/null && return
        kill -0 $runner 2>/dev/null || fail "it ended at once"
        sleep 0.1
    done
    fail "it is not healthy after 10 s"
}

# Runs a program of ours in the container's network.
in_network() { nsenter --target "$server" --net "$@"; }

# The health check, run as an engine runs it: in the container, as its user, without flags.
healthy() {
    env -i $environment "$(command -v nsenter)" --target "$server" --mount --pid --net --ipc --uts --root --wd \
        --setgid 10001 --setuid 10001 /usr/bin/kldivd --healthcheck
}

# Sends SIGTERM and expects exit status 0 by the time given, in seconds.
stop() {
    began=$(date +%s)
    kill -TERM "$server"
    wait "$runner" || fail "exit status $? after SIGTERM"
    took=$(($(date +%s) - began))
    [ $took -le "$1" ] || fail "it took $took s to drain"
    runner=
}

status_of() { grep -E "^$1:" "/proc/$server/status" | tr -s '\t ' ' ' | cut -d' ' -f2-; }
expect() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }
body='{"input": [[-1, -0.5], [-2, -0.2]], "target": [[0.4, 0.6], [0.1, 0.9]]}'
ask() { in_network curl -sS --max-time 60 "$@"; }
code() { ask -o /dev/null -w '%{http_code}' "$@"; }

# ---- Runs

memory=
[ -n "$group" ] || memory='--max-memory 217M'

mkdir -p "$root" "$files/proc" "$files/sys/fs/cgroup" "$files/dev"
rm -rf "$volume" && install -d -o 10001 -g 10001 "$volume"

start "mount --bind '$volume' '$root/var/lib/kldiv'"
expect 'process' "$(status_of NSpid | cut -d' ' -f2)" 1
expect 'user' "$(status_of Uid)" '10001 10001 10001 10001'
for set in CapInh CapPrm CapEff CapBnd CapAmb; do
    expect $set "$(status_of $set)" 0000000000000000
done
expect NoNewPrivs "$(status_of NoNewPrivs)" 1
in_network curl -sS "http://[::1]:8080/readyz" > /dev/null || fail "no answer by IPv6"
expect 'a loss' "$(ask http://127.0.0.1:8080/kl_div?reduction=batchmean -d "$body" | jq -c .loss)" 0.04095267979964768
expect 'a monitor' "$(seq 1000 | sed '1i x' | code -T - http://127.0.0.1:8080/monitors/try)" 201
head -1 "$work/log" | jq -e '.message' > /dev/null || fail "the log is not JSON"
stop 15
say "as process 1 on a read-only root: healthy, a loss, a monitor, SIGTERM: exit status 0 after $took s"

start "mount --bind '$volume' '$root/var/lib/kldiv'" --drain-delay 0 $memory
expect 'the monitor after a start' "$(code http://127.0.0.1:8080/monitors/try/x)" 200

# More than the memory: one body of 300 MB, then eight of 100 MB at once, chunked and not.
bait=$(head -c 300000000 /dev/zero | code -H 'Content-Type: application/x-npz' -H 'Expect:' --data-binary @- http://127.0.0.1:8080/kl_div || true)
case $bait in 413 | 503) ;; *) fail "a body of 300 MB was answered $bait" ;; esac
for i in 1 2 3 4 5 6 7 8; do
    head -c 100000000 /dev/zero |
        code -H 'Content-Type: application/x-npz' -H 'Expect:' -T - -X POST http://127.0.0.1:8080/kl_div > "$work/bait.$i" 2>/dev/null &
    baits="${baits-} $!"
done
healthy || fail "not healthy under load"
wait $baits || true
expect 'a loss after all that' "$(code http://127.0.0.1:8080/kl_div -d "$body")" 200
said=$(cat "$work"/bait.* | sed 's/.../& /g')
if [ -n "$group" ]; then
    most=$(cat "$group/memory.max_usage_in_bytes" 2>/dev/null || cat "$group/memory.peak" 2>/dev/null || echo 0)
    killed=$(cat "$group/memory.oom_control" "$group/memory.events" 2>/dev/null | sed -n 's/^oom_kill //p')
    expect 'processes killed for memory' "${killed:-0}" 0
    say "in 256 MiB: 300 MB answered $bait; eight of 100 MB: $said; at most $((most >> 20)) MiB, none killed"
else
    say "300 MB answered $bait; eight of 100 MB: $said"
fi
stop 10

# A root that is read-only to the end, as in Kubernetes without a volume, then a volume of another user.
for mount in : "mount -t tmpfs tmpfs '$root/var/lib/kldiv' -o mode=755"; do
    start "$mount" --drain-delay 0
    grep -q '"level":"warning".*monitors are kept in memory' "$work/log" || fail "no word of memory in place of a store"
    expect 'a monitor in memory' "$(seq 1000 | sed '1i x' | code -T - http://127.0.0.1:8080/monitors/try)" 201
    stop 10
done
say "without a volume to write: a warning, and monitors in memory"
