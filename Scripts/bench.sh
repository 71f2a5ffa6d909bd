#!/usr/bin/env bash
# bench.sh PROGRAMS VAULTCTL [check | update]: measures the backends, in the directory of the repository.
#
# check: compares each operation on each backend with Benchmarks/thresholds.json, and prints a table of the operations
# that have a limit, measured in turn with that limit. update: writes the thresholds. FILTER is a regular expression for
# the names of operations; with a filter there is no table of limits. Runs in Scripts/private-desktop.sh.
set -euo pipefail
programs=$(realpath "$1") vaultctl=$(realpath "$2") mode=${3:-check}
cd "${BASH_SOURCE[0]%/*}/.."
: "${PRIVATE_DIRECTORY:?run this in Scripts/private-desktop.sh}"

export TOKENVAULT_BENCHMARK_DIRECTORY=$PRIVATE_DIRECTORY/operations
export TOKENVAULT_BENCHMARK_AGENT=$XDG_RUNTIME_DIR/agent
mkdir -m 700 "$TOKENVAULT_BENCHMARK_DIRECTORY" "$TOKENVAULT_BENCHMARK_AGENT"
"$vaultctl-agent" --directory "$TOKENVAULT_BENCHMARK_AGENT" &
agent=$!
trap 'kill $agent; wait $agent || true' EXIT

swift package --package-path Benchmarks --scratch-path .build-benchmarks --allow-writing-to-package-directory \
    benchmark --format jmh --path "$PRIVATE_DIRECTORY" ${FILTER:+--filter "$FILTER"} --no-progress
status=0
Scripts/bench-operations.py "$mode" ${FILTER:+--some} "$PRIVATE_DIRECTORY/Current_run.jmh.json" \
    Benchmarks/thresholds.json .build-benchmarks/operations.json || status=$?
[[ $mode == check && -z ${FILTER:-} ]] || exit "$status"

results=$PRIVATE_DIRECTORY/results
"$programs/memory-benchmark" >>"$results"
"$programs/vault-benchmark" "$PRIVATE_DIRECTORY" >>"$results"
"$programs/scale-benchmark" "$PRIVATE_DIRECTORY" "$vaultctl" >>"$results"
"$programs/verify-benchmark" "$PRIVATE_DIRECTORY" >>"$results"
"$programs/agent-benchmark" "$PRIVATE_DIRECTORY" "$vaultctl-agent" >>"$results"
"$programs/auth-benchmark" "$PRIVATE_DIRECTORY" >>"$results"
Scripts/bench-table.py "$results" .build-benchmarks/bench.json 20
exit "$status"
