#!/usr/bin/env bash
# docs.sh OUTPUT [CATALOG]: builds the documentation of the library from the debug build; any warning is an
# error. Takes the symbols from the modules that are built already and DocC from the toolchain, so that the
# package needs no plugin that every user would have to resolve.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
source Scripts/module-flags.sh

output=${1:?usage: docs.sh OUTPUT [CATALOG]}
catalog=${2:-Sources/TokenVault/Documentation.docc}

symbols=$(mktemp -d)
trap 'rm -rf "$symbols"' EXIT
target=$(swift -print-target-info | sed -n 's/.*"unversionedTriple" *: *"\([^"]*\)".*/\1/p' | head -n 1)
swift symbolgraph-extract -module-name TokenVault -target "$target" "${module_flags[@]}" \
    -minimum-access-level public -skip-inherited-docs -output-dir "$symbols"

mkdir -p "$(dirname "$output")"
docc convert "$catalog" --additional-symbol-graph-dir "$symbols" \
    --fallback-display-name TokenVault --fallback-bundle-identifier TokenVault \
    --warnings-as-errors --output-path "$output"
