#!/usr/bin/env bash
# Runs every soundness check, each after its self-test: a check that cannot fail checks nothing.
# Needs `make build-all` and `make release`. A check that cannot run here ends with 77 and prints its reason.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}"

# run SCRIPT: one check after its self-test. Status 1 when it fails.
run() {
    local start=$SECONDS mode output
    for mode in --self-test ''; do
        output=$("./$1" $mode 2>&1) && continue
        if [[ $? == 77 ]]; then
            printf 'skipped %-18s %s\n' "$1" "$output"
            return 0
        fi
        printf 'FAILED  %s %s\n%s\n' "$1" "$mode" "$output"
        return 1
    done
    printf 'ok      %-18s %3s s\n' "$1" $((SECONDS - start))
}

# This check builds for minutes, for most of them on one core. The others use the other core meanwhile.
slowest=reproducible.sh
said=$(mktemp)
trap 'rm -f "$said"' EXIT
run "$slowest" >"$said" &
slowest_process=$!

failed=0
for script in *.sh; do
    [[ $script == all.sh || $script == "$slowest" ]] || run "$script" || failed=1
done
wait "$slowest_process" || failed=1
cat "$said"
exit $failed
