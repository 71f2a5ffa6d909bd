#!/usr/bin/env bash
# Checks that the Swift in README and in the articles compiles against the library, for a client without `@testable`.
# All snippets of one page are one program, in their order.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."
source Scripts/module-flags.sh

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# program PAGE: prints its ```swift blocks as a function, with the imports in front. Values that a page only shows count
# as used.
program() {
    awk '
        /^```swift$/ { inside = 1; next }
        /^```$/ { inside = 0; next }
        !inside { next }
        /^import / { imports = imports $0 "\n"; next }
        /^let [A-Za-z]+/ { split($2, name, /[^A-Za-z]/); shown = shown "_ = " name[1] "\n" }
        { body = body $0 "\n" }
        END { printf "%sfunc page() async throws {\n%s%s}\n", imports, body, shown }' "$1"
}
check() {
    local page=$1
    program "$page" >"$directory/page.swift"
    # Compiles beyond type checking: later passes of the compiler have crashed on a snippet that type-checked.
    swiftc -emit-sil -o /dev/null -warnings-as-errors -swift-version 6 "${module_flags[@]}" "$directory/page.swift" \
        || { printf '%s: its Swift does not compile\n' "$page"; return 1; }
}

if [[ ${1:-} == --self-test ]]; then
    printf '```swift\nimport TokenVault\n```\n…\n```swift\nlet key: TokenKey = "a"\n```\n```swift\nprint(key)\n```\n' \
        >"$directory/fine.md"
    check "$directory/fine.md" || { echo "a page that compiles is refused"; exit 1; }
    printf '```swift\nimport TokenVault\nlet key = TokenKey(noSuchLabel: 1)\n```\n' >"$directory/planted.md"
    if check "$directory/planted.md" >/dev/null 2>&1; then echo "a page that does not compile passes"; exit 1; fi
    exit
fi

failed=0
for page in README.md Sources/*/Documentation.docc/*.md; do check "$page" || failed=1; done
exit $failed
