#!/usr/bin/env bash
# Checks that `make run` fails when a step goes wrong: runs the demo with programs that misbehave.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

program=$PWD/.build-release/release/vaultctl
[[ -x $program ]] || { echo "run make release first"; exit 1; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# demo BODY: runs the demo with a vaultctl that calls `real "$@"` somewhere in BODY.
demo() {
    printf '#!/bin/bash\nreal() { "%s" "$@"; }\n%s\n' "$program" "$1" >"$directory/vaultctl"
    chmod +x "$directory/vaultctl"
    Scripts/demo.sh "$directory/vaultctl" >"$directory/output" 2>&1
}

if [[ ${1:-} == --self-test ]]; then
    demo 'real "$@"' || { echo "a program that behaves is refused"; cat "$directory/output"; exit 1; }
    exit
fi

if demo 'true'; then echo "a program that does nothing passes"; exit 1; fi
if demo 'real "$@"; status=$?; exit $((status == 5 ? 3 : status))'; then
    echo "a wrong passphrase that reads as not found passes"; exit 1
fi
if demo '[[ $1 == delete ]] || real "$@"'; then echo "a delete that deletes nothing passes"; exit 1; fi
