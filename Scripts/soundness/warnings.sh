#!/usr/bin/env bash
# Checks that there is no warning: not from the Swift compiler (the manifest makes them errors), not from SwiftPM, not
# from C.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

compile_c() { clang -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I Sources/CLinux/include \
    -I Sources/CSecret/include "$@"; }
# SwiftPM's warnings about our dependencies are for their authors to repair.
dependencies=$(cd .build-all/checkouts 2>/dev/null && printf '%s|' *)
quiet() { ! { grep --ignore-case 'warning:' "$1" | grep --invert-match --extended-regexp "^warning: '(${dependencies%|})': "; }; }

# Prints the Swift targets of a manifest, as SwiftPM dumps it, that do not make warnings errors.
lenient() {
    python3 -c '
import json, sys
for target in json.load(sys.stdin)["targets"]:
    settings = [setting["kind"] for setting in target["settings"] if setting["tool"] == "swift"]
    is_c = target["type"] == "system" or target["name"] in ("CLinux", "CSecret")
    if not is_c and {"treatAllWarnings": {"_0": "error"}} not in settings:
        print(target["name"] + ": warnings are no errors")
        sys.exit(1)'
}

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    planted='{"targets":[{"name":"Planted","type":"regular","settings":[{"tool":"swift","kind":{"treatAllWarnings":{"_0":"warning"}}}]}]}'
    if lenient <<<"$planted" >/dev/null; then echo "a target with warnings passes"; exit 1; fi
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
swift package dump-package | lenient
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Everything is built already, so only warnings of the manifest and of the planner can appear.
make --no-print-directory build-all >"$log" 2>&1 || { cat "$log"; exit 1; }
quiet "$log"
