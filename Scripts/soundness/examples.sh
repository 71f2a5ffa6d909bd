#!/usr/bin/env bash
# Checks that the example adapters build as a separate package, like a user's package, and pass their tests.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

if [[ ${1:-} == --self-test ]]; then
    # An adapter that does not compile fails the build of the package: the compiler is the check.
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    printf 'struct Planted: NoSuchProtocol {}\n' >"$directory/planted.swift"
    if swiftc -typecheck "$directory/planted.swift" 2>/dev/null; then
        echo "an adapter without its protocol passes"; exit 1
    fi
    exit
fi

swift test --package-path Examples --scratch-path .build-examples --disable-xctest -Xswiftc -warnings-as-errors
