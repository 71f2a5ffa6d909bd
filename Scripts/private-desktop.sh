#!/usr/bin/env bash
# private-desktop.sh COMMAND…: runs COMMAND with a home, a D-Bus session and an unlocked gnome-keyring of its own, on a
# disk, below the directory PRIVATE_DIRECTORY, and removes all of them afterwards. Measurements therefore never use the
# user's own keyring.
set -euo pipefail

PRIVATE_DIRECTORY=$(mktemp --directory "${TMPDIR:-/var/tmp}/private-desktop.XXXXXX")
started=()
leave() {
    [[ ! -d $GNUPGHOME ]] || gpgconf --kill all || true
    # Ends the last process first: the keyring before its bus.
    for ((index = ${#started[@]} - 1; index >= 0; index--)); do
        kill "${started[index]}" 2>/dev/null || true
        wait "${started[index]}" 2>/dev/null || true
    done
    rm -rf "$PRIVATE_DIRECTORY"
}
export PRIVATE_DIRECTORY HOME=$PRIVATE_DIRECTORY/home XDG_RUNTIME_DIR=$PRIVATE_DIRECTORY/run \
    GNUPGHOME=$PRIVATE_DIRECTORY/gnupg
export XDG_DATA_HOME=$HOME/data XDG_STATE_HOME=$HOME/state XDG_CONFIG_HOME=$HOME/config XDG_CACHE_HOME=$HOME/cache
export DBUS_SESSION_BUS_ADDRESS=unix:path=$XDG_RUNTIME_DIR/bus
unset DISPLAY WAYLAND_DISPLAY SECRET_BACKEND PASSWORD_STORE_DIR PASSWORD_STORE_KEY PASSWORD_STORE_SIGNING_KEY VAULTCTL_VAULT VAULTCTL_PASSPHRASE_FILE \
    VAULTCTL_KEY_FILE VAULTCTL_BACKEND VAULTCTL_SERVICE VAULTCTL_STATE_DIR
trap leave EXIT
trap 'exit 1' HUP INT TERM
mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR"

mkfifo "$PRIVATE_DIRECTORY/ready"
dbus-daemon --session --nofork --address="$DBUS_SESSION_BUS_ADDRESS" --print-address=3 3>"$PRIVATE_DIRECTORY/ready" \
    2>"$PRIVATE_DIRECTORY/bus.log" &
started+=($!)
# fail PROGRAM LOG: prints why there is no desktop.
fail() {
    echo "private-desktop.sh: $1 does not run" >&2
    cat "$2" >&2
    exit 1
}
read -r _ <"$PRIVATE_DIRECTORY/ready" || fail dbus-daemon "$PRIVATE_DIRECTORY/bus.log"
gnome-keyring-daemon --foreground --unlock --components=secrets >/dev/null 2>"$PRIVATE_DIRECTORY/keyring.log" \
    < <(printf 'not-a-real-password') &
started+=($!)
gdbus wait --session org.freedesktop.secrets --timeout 30 || fail gnome-keyring-daemon "$PRIVATE_DIRECTORY/keyring.log"
"$@"
