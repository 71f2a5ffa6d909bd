#!/usr/bin/env bash
# Checks the user units under a real systemd. The socket starts the agent, the agent reports when it is ready, and it is
# hardened. A restart leaves the agent locked, and a credential unlocks it at its start. The manager has a /run, a home
# and a control group of its own, which needs root: without these, the exit status is 77.
set -euo pipefail

if [[ ${1:-} != --inside ]]; then
    script=$(realpath "${BASH_SOURCE[0]}")
    cd "${BASH_SOURCE[0]%/*}/../.."
    [[ $EUID == 0 ]] && unshare --mount --propagation private mount -t tmpfs tmpfs /run 2>/dev/null || {
        echo "needs root, for a systemd with a /run of its own"
        exit 77
    }
    home=$(mktemp -d)
    groups=()
    clean() {
        local group
        for group in "${groups[@]}"; do
            find "$group" -name cgroup.procs -exec cat {} + | xargs --no-run-if-empty kill -KILL || true
            # A killed process exists for a moment longer.
            for _ in {1..100}; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break; sleep 0.02; done
        done
        rm -rf "$home"
    }
    trap clean EXIT
    # The manager ends every process in its control group.
    for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
        [[ -e $hierarchy/cgroup.procs ]] || continue
        groups+=("$hierarchy/tokenvault-$$")
        mkdir "${groups[-1]}" || { echo "needs a control group of its own"; exit 77; }
    done

    # try [SED COMMAND]: runs the whole check, with units changed by the command.
    try() {
        rm -rf "${home:?}"/* && DESTDIR='' STRIP=true Scripts/install.sh .build-release/release/vaultctl "$home/prefix" >/dev/null
        mkdir "$home/units"
        cp "$home"/prefix/lib/systemd/user/* "$home/units"
        sed --in-place "${1:-}" "$home"/units/*
        timeout --kill-after=10 60 unshare --mount --propagation private \
            "$script" --inside "$home" "${groups[@]}" >"$home/said" 2>&1 || {
            local status=$?
            cat "$home/said"
            return "$status"
        }
    }
    if [[ ${1:-} == --self-test ]]; then
        for change in 's/^ListenStream=.*/ListenStream=%t\/elsewhere.sock/' 's/^LimitCORE=0/LimitCORE=infinity/' 's/^MemorySwapMax=.*//' \
            's/^NoNewPrivileges=yes//; s/^SystemCallFilter=.*//' 's/^SystemCallFilter=.*/SystemCallFilter=~flock/'
        do
            if try "$change" >/dev/null 2>&1; then echo "passes: $change"; exit 1; fi
        done
        exit
    fi
    try
    exit
fi

home=$2
for group in "${@:3}"; do echo $$ >"$group/cgroup.procs"; done
mount -t tmpfs tmpfs /run
# The process that mounts credentials is already in another mount namespace.
mount --make-rshared /
mkdir -p /run/systemd/system /run/user/manager
chmod 700 /run/user/manager
export HOME=$home XDG_RUNTIME_DIR=/run/user/manager SYSTEMD_UNIT_PATH=$home/units: PATH=$home/prefix/bin:$PATH
unset DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS
service=tokenvault-agent.service

fail() {
    printf '%s\n' "$*"
    systemctl --user --no-pager status "$service" credential.service || true
    cat "$home/agent" || true
    exit 1
}
# expect STATUS COMMAND…
expect() {
    local wanted=$1 status=0
    shift
    "$@" >"$home/output" 2>&1 || status=$?
    [[ $status == "$wanted" ]] || fail "$*: exit status $status, not $wanted: $(cat "$home/output")"
}
is() { [[ $(systemctl --user show --property="$2" --value "$1") == "$3" ]] || fail "$1: no $2=$3"; }

printf '[Unit]\nDescription=Nothing\n' >"$home/units/default.target"
for unit in "$service" credential.service; do
    mkdir "$home/units/$unit.d"
    printf '[Service]\nStandardError=append:%s/agent\n' "$home" >"$home/units/$unit.d/errors.conf"
done
cat >"$home/units/credential.service" <<UNIT
[Service]
Type=notify
LoadCredential=tokenvault:$home/key
ExecStart=$home/prefix/bin/vaultctl agent --credential tokenvault --vault $home/example.vault
UNIT
/lib/systemd/systemd --user >"$home/manager" 2>&1 &
manager=$!
trap 'systemctl --user exit >/dev/null 2>&1 || kill "$manager"; wait "$manager" || true' EXIT
until systemctl --user is-system-running --wait >/dev/null 2>&1; do
    kill -0 "$manager" 2>/dev/null || { echo "systemd does not run here as the manager of a user"; exit 77; }
done

head --bytes=32 /dev/urandom | base64 >"$home/key"
chmod 600 "$home/key"
export VAULTCTL_VAULT=$home/example.vault VAULTCTL_SERVICE=com.example.app
expect 0 vaultctl init --key-file "$home/key"
printf 'fake-token' | vaultctl store always --policy after-first-unlock --key-file "$home/key"
printf 'fake-token' | vaultctl store unlocked --policy when-unlocked --key-file "$home/key"

# The socket starts the agent, and the first client is served.
expect 0 systemctl --user start tokenvault-agent.socket
is "$service" ActiveState inactive
expect 0 vaultctl unlock --key-file "$home/key"
is "$service" ActiveState active
expect 0 vaultctl retrieve unlocked
process=$(systemctl --user show --property=MainPID --value "$service")
grep --quiet '^Max core file size *0 *0 ' "/proc/$process/limits" || fail "core files are allowed"
is "$service" MemorySwapMax 0
grep --quiet '^NoNewPrivs:.1$' "/proc/$process/status" || fail "new privileges are allowed"
grep --quiet '^Seccomp:.2$' "/proc/$process/status" || fail "no system call is filtered"
grep --quiet --null-data '^SWIFT_BACKTRACE=enable=no$' "/proc/$process/environ" || fail "backtraces are on"

# SIGHUP locks the vault, and the agent goes on.
expect 0 systemctl --user kill --kill-whom=main --signal=HUP "$service"
until vaultctl status --json | grep --quiet '"state":"afterFirstUnlock"'; do :; done
expect 4 vaultctl retrieve unlocked
expect 0 vaultctl retrieve always
is "$service" MainPID "$process"

# A restart forgets every key, and a stop counts as a success.
expect 0 vaultctl unlock --key-file "$home/key"
expect 0 systemctl --user restart "$service"
expect 4 vaultctl retrieve always
expect 0 systemctl --user stop "$service" tokenvault-agent.socket
is "$service" Result success

# A credential unlocks without a prompt. The unit is ready once the vault is unlocked, so later units find it unlocked.
expect 0 systemctl --user start credential.service
expect 0 vaultctl retrieve always
expect 0 systemctl --user stop credential.service
is credential.service Result success
