#!/usr/bin/env bash
# bench-retrieve.sh VAULTCTL COMMAND_BENCHMARK [ROUNDS]: one secret from a small vault, with a key file and through the
# agent, against the same secret from a real gnome-keyring through secret-tool and from a file of `pass`, as whole
# processes, in turn. Starts a private D-Bus, keyring, agents and GnuPG and stops them.
set -euo pipefail

vaultctl=$(realpath "$1") benchmark=$(realpath "$2") rounds=${3:-300}
for tool in dbus-run-session gnome-keyring-daemon secret-tool pass gpg; do
    command -v "$tool" >/dev/null || {
        printf 'bench-retrieve: %s is missing: apt-get install dbus gnome-keyring libsecret-tools pass gnupg\n' \
            "$tool" >&2
        exit 1
    }
done
directory=$(mktemp -d "${TMPDIR:-/var/tmp}/bench-retrieve.XXXXXX")
export GNUPGHOME=$directory/gnupg
trap 'gpgconf --kill all; rm -rf "$directory"' EXIT
mkdir -m 700 "$directory/home" "$directory/run" "$GNUPGHOME"
export HOME=$directory/home XDG_RUNTIME_DIR=$directory/run
export XDG_DATA_HOME=$HOME/data XDG_STATE_HOME=$HOME/state XDG_CONFIG_HOME=$HOME/config
unset DBUS_SESSION_BUS_ADDRESS VAULTCTL_VAULT VAULTCTL_PASSPHRASE_FILE VAULTCTL_BACKEND VAULTCTL_SERVICE
export VAULTCTL_KEY_FILE=$directory/key
# A key without a passphrase: gpg-agent has nothing to ask for.
gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-generate-key bench@example.org default default never
pass init bench@example.org >/dev/null
pass insert --multiline token <<<fake-token >/dev/null
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
    printf "through the agent:\n"
    "$vaultctl" unlock >/dev/null
    trap "\"$vaultctl\" agent --stop; kill $daemon 2>/dev/null" EXIT
    unset VAULTCTL_KEY_FILE
    [[ $("$vaultctl" retrieve token) == fake-token && $(pass show token) == fake-token ]]
    status=0
    "$benchmark" "$rounds" 0.4 "$vaultctl" retrieve token -- secret-tool lookup service bench account token || status=1
    "$benchmark" "$rounds" 0.15 "$vaultctl" retrieve token -- pass show token || status=1
    exit $status
'
