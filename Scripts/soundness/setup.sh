#!/usr/bin/env bash
# Checks Scripts/setup on machines with missing packages: it installs them, or prints the command to install them and
# stops.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

if [[ ${1:-} == --self-test ]]; then exit; fi # all of this is planted

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
fail() { echo "setup $1"; cat "$directory/said"; exit 1; }

# machine USER SUDO [MODE]: a machine where no program with libsodium builds (`CC=false`); the user, sudo and apt-get
# are stubs.
machine() {
    local user=$1 sudo=$2 mode=${3:-} status=0
    printf '#!/bin/sh\necho %s\n' "$user" >"$directory/id"
    printf '#!/bin/sh\n[ %s = yes ] || exit 1\nshift\n"$@"\n' "$sudo" >"$directory/sudo"
    printf '#!/bin/sh\necho "$@" >>"%s/asked"\n' "$directory" >"$directory/apt-get"
    chmod +x "$directory"/{id,sudo,apt-get}
    : >"$directory/asked"
    PATH=$directory:$PATH CC=false Scripts/setup $mode >"$directory/said" 2>&1 || status=$?
    return $status
}

for mode in '' --tests; do
    Scripts/setup $mode >"$directory/said" 2>&1 || fail "fails where everything is there"
    [[ ! -s $directory/said ]] || fail "is not quiet where everything is there"
done
if machine 1000 no; then fail "goes on without libsodium and without root"; fi
grep --quiet 'apt-get install libsodium-dev' "$directory/said" || fail "does not name the packages"
[[ ! -s $directory/asked ]] || fail "asks apt-get without root"
for user in 0 1000; do
    if machine "$user" yes; then fail "goes on although libsodium does not build after installing"; fi
    grep --quiet '^install .*libsodium-dev' "$directory/asked" || fail "as user $user does not ask apt-get"
    if grep --quiet 'gnome-keyring' "$directory/asked"; then fail "asks for a keyring where none is tested"; fi
    if machine "$user" yes --tests; then fail "goes on although libsodium does not build after installing"; fi
    grep --quiet '^install .*libsodium-dev.* gnome-keyring' "$directory/asked" \
        || fail "as user $user does not ask apt-get for what the tests need"
done
