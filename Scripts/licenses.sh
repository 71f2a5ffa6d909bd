#!/usr/bin/env bash
# licenses.sh BUILD OUTPUT: writes the licenses and notices of the packages that the programs of the build directory BUILD contain
# into one file, as these licenses demand of programs.
set -euo pipefail
export LC_ALL=C
[[ $# == 2 ]] || { echo "usage: licenses.sh BUILD OUTPUT" >&2; exit 64; }
mkdir -p "$(dirname -- "$2")"
for checkout in "$1"/checkouts/*/; do
    found=
    for file in "$checkout"LICEN[CS]E* "$checkout"NOTICE*; do
        [[ -f $file ]] || continue
        found=yes
        printf '===== %s: %s\n\n' "$(basename -- "$checkout")" "${file##*/}"
        cat -- "$file"
        printf '\n'
    done
    [[ -n $found ]] || { echo "licenses: $checkout has no license" >&2; exit 1; }
done >"$2"
chmod 644 "$2"
[[ -s $2 ]] || { echo "licenses: $1 has no packages" >&2; exit 1; }
