#!/usr/bin/env bash
# Times the Secret Service backend against a C program that calls libsecret: bench-keyring.sh BENCHMARK ITEMS,
# on a private bus with a gnome-keyring of its own, in memory.
set -euo pipefail

benchmark=$(realpath "$1")
items=${2:-200}
directory=$(mktemp --directory --tmpdir="$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp)")
bus='' keyring=''
trap 'kill $keyring $bus 2>/dev/null || true; wait; rm -rf "$directory"' EXIT
export HOME=$directory XDG_RUNTIME_DIR=$directory XDG_DATA_HOME=$directory/data \
    XDG_CONFIG_HOME=$directory/config XDG_CACHE_HOME=$directory/cache
export DBUS_SESSION_BUS_ADDRESS=unix:path=$directory/bus

# shellcheck disable=SC2046
"${CC:-clang}" -O2 -o "$directory/loop" "${BASH_SOURCE[0]%/*}/../Benchmarks/Libsecret/loop.c" \
    $(pkg-config --cflags --libs libsecret-1)
mkfifo "$directory/ready"
dbus-daemon --session --nofork --address="$DBUS_SESSION_BUS_ADDRESS" --print-address=3 3>"$directory/ready" &
bus=$!
read -r _ <"$directory/ready"
printf 'not-a-real-password' | gnome-keyring-daemon --foreground --unlock --components=secrets \
    >/dev/null 2>"$directory/log" &
keyring=$!
gdbus wait --session org.freedesktop.secrets --timeout 30
"$benchmark" "$DBUS_SESSION_BUS_ADDRESS" "$directory/loop" "$items"
