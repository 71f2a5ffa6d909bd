#!/usr/bin/env bash
# docs.sh OUTPUT [CATALOG [MODULE]]: builds the documentation of a library from the debug build; any warning is an
# error. Takes the symbols from the built modules and DocC from the toolchain, so that the package needs no plugin that
# every user would have to resolve.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
source Scripts/module-flags.sh

output=${1:?usage: docs.sh OUTPUT [CATALOG [MODULE]]}
catalog=${2:-Sources/TokenVault/Documentation.docc}
module=${3:-TokenVault}

symbols=$(mktemp -d)
trap 'rm -rf "$symbols"' EXIT
target=$(swift -print-target-info | sed -n 's/.*"unversionedTriple" *: *"\([^"]*\)".*/\1/p' | head -n 1)
swift symbolgraph-extract -module-name "$module" -target "$target" "${module_flags[@]}" \
    -minimum-access-level public -skip-inherited-docs \
    -experimental-allowed-reexported-modules=TokenVaultCore,TokenVaultDesktop,TokenVaultFile -output-dir "$symbols"

mkdir -p "$(dirname "$output")"
docc convert "$catalog" --additional-symbol-graph-dir "$symbols" \
    --fallback-display-name "$module" --fallback-bundle-identifier "$module" \
    --warnings-as-errors --output-path "$output"
