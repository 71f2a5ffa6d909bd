#!/usr/bin/env bash
# strip-program.sh PROGRAM OUTPUT: copies a program without its symbols, which are half of its size, and with zeros in the section
# where Swift keeps a hash of how each module was compiled: the directory counts there. strip would remove the section as well, but
# the program would lose the protection of its tables (GNU_RELRO). STRIP=true keeps the symbols.
set -euo pipefail
[[ $# == 2 ]] || { echo "usage: strip-program.sh PROGRAM OUTPUT" >&2; exit 64; }
install -D --mode=755 -- "$1" "$2"
"${STRIP:-strip}" --strip-all "$2"
# Offset and size of the section, in hexadecimal.
readelf --section-headers --wide "$2" | sed -nE 's/.* \.swift_modhash +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) .*/\1 \2/p' \
    | while read -r offset size; do
        dd if=/dev/zero of="$2" bs=1 seek=$((16#$offset)) count=$((16#$size)) conv=notrunc status=none
    done
