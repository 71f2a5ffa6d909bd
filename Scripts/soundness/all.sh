#!/usr/bin/env bash
# Runs every soundness check, each after its self-test: a check that cannot fail checks nothing.
# Needs `make build-all` and `make release`. A check that cannot run here ends with 77 and prints its reason.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}"

failed=0
for script in *.sh; do
    [[ $script == all.sh ]] && continue
    start=$SECONDS
    for mode in --self-test ''; do
        output=$("./$script" $mode 2>&1) && continue
        if [[ $? == 77 ]]; then
            printf 'skipped %-18s %s\n' "$script" "$output"
            continue 2
        fi
        printf 'FAILED  %s %s\n%s\n' "$script" "$mode" "$output" >&2
        failed=1
        continue 2
    done
    printf 'ok      %-18s %3s s\n' "$script" $((SECONDS - start))
done
exit $failed
