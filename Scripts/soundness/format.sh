#!/usr/bin/env bash
# Checks that every Swift file is formatted and linted as .swift-format says.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

lint() { swift format lint --strict --parallel --recursive --configuration .swift-format "$@"; }

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    printf 'let one = 1\n' >"$directory/Clean.swift"
    lint "$directory" || { echo "a clean file is refused"; exit 1; }
    printf 'let  one=1\n' >"$directory/Spaces.swift"
    if lint "$directory" 2>/dev/null; then echo "bad spacing passes"; exit 1; fi
    printf 'let one = Int("1")!\n' >"$directory/Spaces.swift"
    if lint "$directory" 2>/dev/null; then echo "a forced unwrap passes"; exit 1; fi
    exit
fi

folders=(Package.swift Sources Tests)
for folder in Fuzzing Benchmarks Examples; do [[ ! -d $folder ]] || folders+=("$folder"); done
lint "${folders[@]}"
