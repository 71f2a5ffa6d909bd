#!/usr/bin/env bash
# Runs a command that runs tests. When it fails, says at the end which tests did and why: the line of a failed
# test is thousands of lines before the last.
set -uo pipefail

output=$(mktemp)
trap 'rm -f "$output"' EXIT

"$@" 2>&1 | tee "$output"
status=${PIPESTATUS[0]}
# A lane that is left out of all would pass without having been looked at.
if [[ ${TOKENVAULT_TESTS:-} == all ]] && grep --quiet 'TOKENVAULT_TESTS=[a-z]* runs it' "$output"; then
    printf '\n== tests were left out of a run of all\n'
    status=1
fi
if ((status != 0)); then
    printf '\n== what failed\n'
    grep --after-context=3 --extended-regexp '^✘|recorded an issue|: error: ' "$output" | tail -n 60
fi
exit "$status"
