#!/usr/bin/env bash
# No warning: not from the Swift compiler (the debug build makes them errors), not from SwiftPM, not from C.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

compile_c() { clang -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I Sources/CLinux/include \
    -I Sources/CSecret/include "$@"; }
# What SwiftPM says of the packages we depend on is theirs to mend.
dependencies=$(cd .build/checkouts 2>/dev/null && printf '%s|' *)
quiet() { ! { grep --ignore-case 'warning:' "$1" | grep --invert-match --extended-regexp "^warning: '(${dependencies%|})': "; }; }

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    # Read to the end, then looked at: `grep --quiet` in a pipeline would end `make` by a closed pipe, sometimes.
    commands=$(make --dry-run build)
    [[ $commands == *'-Xswiftc -warnings-as-errors'* ]] \
        || { echo "make build does not make warnings errors"; exit 1; }
    printf 'func planted() { let unused = 1 }\n' >"$directory/planted.swift"
    if swiftc -typecheck -warnings-as-errors "$directory/planted.swift" 2>/dev/null; then
        echo "a warning of the Swift compiler passes"; exit 1
    fi
    printf 'static int planted(void) { return 1; }\n' >"$directory/planted.c"
    if compile_c "$directory/planted.c" 2>/dev/null; then echo "a warning of the C compiler passes"; exit 1; fi
    printf "Build complete!\nwarning: 'x': found 1 file(s) which are unhandled\n" >"$directory/log"
    if quiet "$directory/log" >/dev/null; then echo "a warning of SwiftPM passes"; exit 1; fi
    printf "warning: 'swift-system': found 1 file(s) which are unhandled\n" >"$directory/log"
    quiet "$directory/log" || { echo "a warning about a dependency is refused"; exit 1; }
    exit
fi

compile_c Sources/{CLinux,CSecret}/*.c
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Everything is built already: what is left to say are the manifest's and the planner's warnings.
make --no-print-directory build >"$log" 2>&1 || { cat "$log"; exit 1; }
quiet "$log"
