#!/usr/bin/env bash
# strip-program.sh PROGRAM OUTPUT: copies a program without its symbols, which are half of its size, and without the section in
# which Swift keeps a hash of how each module was compiled: the directory counts there. STRIP=true keeps both.
set -euo pipefail
[[ $# == 2 ]] || { echo "usage: strip-program.sh PROGRAM OUTPUT" >&2; exit 64; }
install -D --mode=755 -- "$1" "$2"
"${STRIP:-strip}" --strip-all --remove-section=.swift_modhash "$2"
