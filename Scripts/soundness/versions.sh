#!/usr/bin/env bash
# Checks that the resolved dependencies are exactly those of Scripts/tested-versions.txt.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

# Reads the text tree (`├── swift-system<https://…@1.8.1>(traits: default)`), and prints sorted `name version` lines.
from_tree() { sed -n 's/^[^A-Za-z0-9]*\([A-Za-z0-9._-]*\)<[^>]*@\([^@>]*\)>.*/\1 \2/p' | sort -u; }
compare() {
    diff --unified=0 --label tested --label resolved <(grep -v '^#' "$1" | sort) "$2" | sed '/^@@/d'
    return "${PIPESTATUS[0]}"
}

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

if [[ ${1:-} == --self-test ]]; then
    printf '.\n├── one<https://example.com/one@1.2.3>\n│   └── two-three<https://example.com/two@2.0.0>(traits: default)\n' \
        | from_tree >"$directory/resolved"
    printf '# comment\none 1.2.3\ntwo-three 2.0.0\n' >"$directory/tested"
    compare "$directory/tested" "$directory/resolved" || { echo "equal versions differ"; exit 1; }
    for tested in 'one 1.2.3' $'one 1.2.3\ntwo-three 2.0.1' $'one 1.2.3\nthree 1.0.0\ntwo-three 2.0.0'; do
        printf '%s\n' "$tested" >"$directory/tested"
        if compare "$directory/tested" "$directory/resolved" >/dev/null; then echo "passes: $tested"; exit 1; fi
    done
    exit
fi

{
    printf '%s\n' "libsodium $(pkg-config --modversion libsodium)" \
        "libsecret $(pkg-config --modversion libsecret-1)" "glib $(pkg-config --modversion glib-2.0)"
    swift package --scratch-path .build-all --traits OAuth show-dependencies --format text | from_tree
} | sort >"$directory/resolved"
compare Scripts/tested-versions.txt "$directory/resolved" || {
    echo "when 'make test' passes with these, change Scripts/tested-versions.txt"
    exit 1
}
