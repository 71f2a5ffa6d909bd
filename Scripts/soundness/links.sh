#!/usr/bin/env bash
# Checks that each relative link in a Markdown page of the repository leads to a file. DocC checks its own links: documentation.sh.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1

# check PAGE...: prints the links that lead nowhere. Status 1 when there are any.
check() {
    local page link target failed=0
    for page; do
        while IFS= read -r link; do
            target=${link%%#*}
            [[ -z $target || $target == *://* || $target == doc:* || $target == mailto:* ]] && continue
            [[ -e $(dirname "$page")/$target ]] || { printf '%s: no such file: %s\n' "$page" "$link"; failed=1; }
        done < <(grep --only-matching --perl-regexp '\]\(\K[^) ]+(?=\))' "$page")
    done
    return $failed
}

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    touch "$directory/there.md"
    printf '%s\n' '[a](there.md#part), [b](https://example.com/x) and [c](#part)' '![d](there.md)' >"$directory/page.md"
    check "$directory/page.md" || { echo "a good link fails"; exit 1; }
    printf '%s\n' '[a](there.md), [b](nowhere.md)' >"$directory/page.md"
    if check "$directory/page.md" >/dev/null; then echo "a link to nowhere passes"; exit 1; fi
    exit
fi

mapfile -t pages < <(git ls-files '*.md')
[[ ${#pages[@]} -gt 0 ]] || { echo "there is no page"; exit 1; }
check "${pages[@]}"
