#!/usr/bin/env bash
# bench-retrieve.sh VAULTCTL COMMAND_BENCHMARK [ROUNDS]: one secret from a small vault with a key file against the
# same secret from a real gnome-keyring through secret-tool, as whole processes, in turn. Starts a private
# D-Bus and keyring and stops them.
set -euo pipefail

vaultctl=$(realpath "$1") benchmark=$(realpath "$2") rounds=${3:-300}
for tool in dbus-run-session gnome-keyring-daemon secret-tool; do
    command -v "$tool" >/dev/null || {
        printf 'bench-retrieve: %s is missing: apt-get install dbus gnome-keyring libsecret-tools\n' "$tool" >&2
        exit 1
    }
done
directory=$(mktemp -d "${TMPDIR:-/var/tmp}/bench-retrieve.XXXXXX")
trap 'rm -rf "$directory"' EXIT
mkdir -m 700 "$directory/home" "$directory/run"
export HOME=$directory/home XDG_RUNTIME_DIR=$directory/run
export XDG_DATA_HOME=$HOME/data XDG_STATE_HOME=$HOME/state XDG_CONFIG_HOME=$HOME/config
unset DBUS_SESSION_BUS_ADDRESS VAULTCTL_VAULT VAULTCTL_PASSPHRASE_FILE VAULTCTL_BACKEND VAULTCTL_SERVICE
export VAULTCTL_KEY_FILE=$directory/key
export vaultctl benchmark rounds

dbus-run-session -- bash -euo pipefail -c '
    daemon=$(printf fake-password | gnome-keyring-daemon --unlock --components=secrets --foreground >/dev/null 2>&1 & echo $!)
    trap "kill $daemon 2>/dev/null" EXIT
    for _ in {1..100}; do
        printf fake-token | secret-tool store --label=bench service bench account token 2>/dev/null && break
        read -r -t 0.1 <> <(:) || true
    done
    "$vaultctl" init >/dev/null
    printf fake-token | "$vaultctl" store token >/dev/null
    [[ $(secret-tool lookup service bench account token) == fake-token ]]
    [[ $("$vaultctl" retrieve token) == fake-token ]]
    "$benchmark" "$rounds" 0.5 "$vaultctl" retrieve token -- secret-tool lookup service bench account token
'
