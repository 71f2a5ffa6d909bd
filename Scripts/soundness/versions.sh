#!/usr/bin/env bash
# The dependencies that the tests are built with are those of Scripts/tested-versions.txt: no others, and none is missing.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

# compare TESTED: the system's libraries, as pkg-config knows them, with the lines of the list that have no address.
compare() {
    diff --unified=0 --label tested --label installed <(awk '!/^#/ && NF == 2' "$1" | sort) - | sed '/^@@/d'
    return "${PIPESTATUS[0]}"
}

if [[ ${1:-} == --self-test ]]; then
    /usr/bin/python3 -I -B Scripts/pins.py --self-test
    tested=$(mktemp)
    trap 'rm -f "$tested"' EXIT
    printf '# comment\none 1.2.3\npackage 1.0.0 abc https://example.com\n' >"$tested"
    echo 'one 1.2.3' | compare "$tested" || { echo "equal versions differ"; exit 1; }
    for installed in 'one 1.2.4' $'one 1.2.3\ntwo 2.0.1' 'three 1.0.0'; do
        if echo "$installed" | compare "$tested" >/dev/null; then echo "passes: $installed"; exit 1; fi
    done
    exit
fi

failed=0
printf '%s\n' "glib $(pkg-config --modversion glib-2.0)" "libsecret $(pkg-config --modversion libsecret-1)" \
    "libsodium $(pkg-config --modversion libsodium)" | compare Scripts/tested-versions.txt || failed=1
/usr/bin/python3 -I -B Scripts/pins.py check .build-all || failed=1
[[ $failed == 0 ]] || echo "when 'make test' passes with these, change Scripts/tested-versions.txt"
exit $failed
