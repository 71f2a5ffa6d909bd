#!/usr/bin/env bash
# Runs a command that runs tests. After a failure, prints at the end which tests failed and why: the line of a failed
# test is thousands of lines before the last.
set -uo pipefail

output=$(mktemp)
trap 'rm -f "$output"' EXIT

"$@" 2>&1 | tee "$output"
status=${PIPESTATUS[0]}
# Tests that were left out must not look as if they had passed.
case ${TOKENVAULT_TESTS:-fast} in
all) left_out='[a-z]*' ;;
remaining) left_out=all ;;
*) left_out= ;;
esac
if [[ -n $left_out ]] && grep --quiet "TOKENVAULT_TESTS=$left_out runs it" "$output"; then
    printf '\n== tests were left out that this run is there for\n'
    status=1
fi
if ((status != 0)); then
    printf '\n== what failed\n'
    grep --after-context=3 --extended-regexp '^✘|recorded an issue|: error: ' "$output" | tail -n 60
fi
exit "$status"
