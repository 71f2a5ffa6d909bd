#!/usr/bin/env bash
# Checks that every public declaration of the libraries has a comment: its own, or that of the requirement that it
# implements.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."
source Scripts/module-flags.sh

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
target=$(swift -print-target-info | sed -n 's/.*"unversionedTriple" *: *"\([^"]*\)".*/\1/p' | head -n 1)

# check MODULE FLAGS...: prints the declarations without a comment and fails if there are any.
check() {
    local module=$1
    shift
    rm -rf "$directory/graph"
    mkdir "$directory/graph"
    swift symbolgraph-extract -module-name "$module" -target "$target" "$@" \
        -minimum-access-level public -output-dir "$directory/graph"
    /usr/bin/python3 - "$directory/graph" <<'PYTHON'
import json, pathlib, sys

bare = set()
for graph in pathlib.Path(sys.argv[1]).iterdir():
    for symbol in json.loads(graph.read_text())["symbols"]:
        if "location" in symbol and "docComment" not in symbol:
            place = symbol["location"]
            bare.add(f'{place["uri"].removeprefix("file://")}:{place["position"]["line"] + 1}: '
                     f'{".".join(symbol["pathComponents"])} has no comment')
for line in sorted(bare):
    print(line)
sys.exit(1 if bare else 0)
PYTHON
}

if [[ ${1:-} == --self-test ]]; then
    plant() {
        printf '%s\n' '/// A protocol.' 'public protocol Kept {' '    /// Keeps.' '    func keep()' '}' \
            '/// Keeps well.' 'public struct Keeper: Kept {' "$@" '    public func keep() {}' '}' \
            >"$directory/Planted.swift"
        swiftc -module-name Planted -parse-as-library -emit-module -emit-module-path "$directory/Planted.swiftmodule" \
            "$directory/Planted.swift"
        check Planted -I "$directory"
    }
    plant || { echo "a requirement's comment does not count"; exit 1; }
    if plant '    public func other() {}' >/dev/null; then echo "a missing comment passes"; exit 1; fi
    exit
fi

failed=0
for module in TokenVault TokenVaultAuth TokenVaultOAuth TokenVaultTesting VaultAgent; do
    check "$module" "${module_flags[@]}" || failed=1
done
exit $failed
