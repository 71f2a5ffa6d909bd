#!/usr/bin/env bash
# Checks that each relative link in a Markdown page of the repository leads to a file. DocC checks its own links: documentation.sh.
# GitHub shows the pages outside a catalog, and cannot follow a link of DocC there.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1

# check PAGE...: prints the links that lead nowhere. Status 1 when there are any.
check() {
    local page link target failed=0
    for page; do
        if [[ $page != *.docc/* ]]; then
            while IFS= read -r link; do
                printf '%s: a link of DocC: %s\n' "$page" "$link"
                failed=1
            done < <(grep --only-matching --extended-regexp '(<|\]\()doc:[^>)]*[>)]' "$page")
        fi
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
    mkdir "$directory/Articles.docc"
    for link in '[a](doc:Article)' '<doc:Article>'; do
        tee "$directory/Articles.docc/page.md" <<<"See $link." >"$directory/page.md"
        check "$directory/Articles.docc/page.md" || { echo "an article may not link to an article: $link"; exit 1; }
        if check "$directory/page.md" >/dev/null; then echo "GitHub shows a link of DocC: $link"; exit 1; fi
    done
    exit
fi

mapfile -t pages < <(git ls-files '*.md')
[[ ${#pages[@]} -gt 0 ]] || { echo "there is no page"; exit 1; }
check "${pages[@]}"
