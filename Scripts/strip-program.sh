#!/usr/bin/env bash
# strip-program.sh PROGRAM OUTPUT: copies a program without its symbols, which are half of its size. STRIP=true keeps them. The section
# .swift_modhash stays: when strip removes it, the program loses the protection of its tables (GNU_RELRO).
set -euo pipefail
[[ $# == 2 ]] || { echo "usage: strip-program.sh PROGRAM OUTPUT" >&2; exit 64; }
install -D --mode=755 -- "$1" "$2"
"${STRIP:-strip}" --strip-all "$2"
