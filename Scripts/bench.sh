#!/usr/bin/env bash
# bench.sh PROGRAMS VAULTCTL [check | update]: measures, in the directory of the repository, what the backends take.
#
# check: each operation on each backend, held against Benchmarks/Thresholds; and what there is a limit for, in turn with
# that limit, as a table. update: writes the thresholds anew. FILTER is a regular expression for the names of
# operations; with it no table is made. Runs in Scripts/private-desktop.sh.
set -euo pipefail
programs=$(realpath "$1") vaultctl=$(realpath "$2") mode=${3:-check}
cd "${BASH_SOURCE[0]%/*}/.."
: "${PRIVATE_DIRECTORY:?run this in Scripts/private-desktop.sh}"
thresholds=$PWD/Benchmarks/Thresholds

export TOKENVAULT_BENCHMARK_DIRECTORY=$PRIVATE_DIRECTORY/operations
export TOKENVAULT_BENCHMARK_AGENT=$XDG_RUNTIME_DIR/agent
mkdir -m 700 "$TOKENVAULT_BENCHMARK_DIRECTORY" "$TOKENVAULT_BENCHMARK_AGENT"
"$vaultctl-agent" --directory "$TOKENVAULT_BENCHMARK_AGENT" &
agent=$!
trap 'kill $agent; wait $agent || true' EXIT

benchmark() {
    swift package --package-path Benchmarks --scratch-path .build-benchmarks --allow-writing-to-package-directory \
        benchmark "$@" ${FILTER:+--filter "$FILTER"} --no-progress --path "$thresholds"
}
if [[ $mode == update ]]; then
    benchmark thresholds update
    exit
fi

# A threshold that nobody checks would be found by nobody, and so would a benchmark without one.
if [[ -z ${FILTER:-} ]]; then
    diff --unified=0 --label "Benchmarks/Thresholds" --label "benchmarks" \
        <(cd "$thresholds" && printf '%s\n' *.p90.json | sort) \
        <(benchmark list | sed -n 's/^\([a-z][A-Za-z0-9-]*\)$/Operations.\1.p90.json/p' | sort) \
        || { echo "bench: the thresholds are not those of the benchmarks; make bench-thresholds"; exit 1; }
fi
status=0
benchmark thresholds check >"$PRIVATE_DIRECTORY/check" 2>&1 || status=$?
cat "$PRIVATE_DIRECTORY/check"
# What became better by more than the tolerance is no failure.
if [[ $status != 0 ]] && grep --quiet 'is BETTER than the defined thresholds' "$PRIVATE_DIRECTORY/check"; then
    echo "bench: better than the thresholds; make bench-thresholds"
    status=0
fi
[[ -z ${FILTER:-} ]] || exit "$status"

results=$PRIVATE_DIRECTORY/results
"$programs/memory-benchmark" >>"$results"
"$programs/vault-benchmark" "$PRIVATE_DIRECTORY" >>"$results"
"$programs/scale-benchmark" "$PRIVATE_DIRECTORY" "$vaultctl" >>"$results"
"$programs/verify-benchmark" "$PRIVATE_DIRECTORY" >>"$results"
"$programs/agent-benchmark" "$vaultctl-agent" >>"$results"
"$programs/auth-benchmark" >>"$results"
Scripts/bench-table.py "$results" .build-benchmarks/bench.json
exit "$status"
