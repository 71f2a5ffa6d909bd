#!/usr/bin/env bash
# Checks the boundaries that targets alone do not keep: which modules import a module, and which use raw memory.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

# Prints each line that breaks a rule; status 1 when there is one.
check() {
    local sources=$1 found=0
    modifiers='(@[A-Za-z_]+(\([^)]*\))?[[:space:]]+)*((public|package|internal|fileprivate|private)[[:space:]]+)?'
    kinds='((struct|class|enum|protocol|typealias|func|var|let)[[:space:]]+)?'

    # only PATTERN ROOM…: the pattern occurs only in these folders.
    only() {
        local pattern=$1 hits room
        shift
        hits=$(grep -rnE --include='*.swift' -- "$pattern" "$sources" || true)
        for room in "$@"; do hits=$(grep -v "^$sources/$room/" <<<"$hits" || true); done
        if [[ -n $hits ]]; then
            printf '%s\n' "$hits" "    only in: ${*:-nowhere}"
            found=1
        fi
    }
    import() { only "^[[:space:]]*${modifiers}import[[:space:]]+${kinds}$1([.[:space:]]|\$)" "${@:2}"; }

    import CSodium TokenVaultCrypto
    import CLinux TokenVaultPlatform ProgramSupport/Processes ProgramSupport/Terminal ProgramSupport/Measuring
    import Glibc TokenVaultPlatform ProgramSupport/Processes ProgramSupport/Terminal ProgramSupport/Measuring
    import CSecret TokenVaultDesktop
    import ArgumentParser vaultctl
    import Histogram vaultctl-benchmark
    import TokenVaultOAuth vaultctl-oauth
    import '(AsyncHTTPClient|JWTKit|Crypto|CryptoExtras|Logging|NIO[A-Za-z0-9]*)' TokenVaultOAuth
    only 'UnsafeMutableRawPointer' TokenVaultCrypto TokenVaultPlatform TokenVaultDesktop
    only '(^|[^A-Za-z_."`])(fatalError|try!)' # what a file, a user or a daemon causes is an error
    only '(TODO|FIXME|XXX)'

    # Foundation is allowed only without FoundationEssentials: in the #else of its #if canImport.
    while IFS= read -r file; do
        awk -v foundation="^[[:space:]]*${modifiers//\\/\\\\}import[[:space:]]+${kinds}Foundation([.[:space:]]|\$)" '
            /^#if canImport\(FoundationEssentials\)$/ { essentials = 1; fallback = 0 }
            /^#else$/ { fallback = essentials }
            /^#endif$/ { essentials = 0; fallback = 0 }
            $0 ~ foundation && !fallback {
                print FILENAME ":" FNR ":" $0 "\n    FoundationEssentials, behind #if canImport"; bad = 1 }
            END { exit bad }' "$file" || found=1
    done < <(find "$sources" -name '*.swift')
    return $found
}

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    mkdir -p "$directory"/{TokenVaultCore,TokenVaultCrypto,TokenVaultPlatform,TokenVaultDesktop,TokenVaultFile,vaultctl}
    printf 'internal import CSodium\n// import Foundation\n' >"$directory/TokenVaultCrypto/Fine.swift"
    printf 'import Glibc\nlet p: UnsafeMutableRawPointer\n' >"$directory/TokenVaultPlatform/Fine.swift"
    printf '#if canImport(FoundationEssentials)\nimport FoundationEssentials\n#else\nimport Foundation\n#endif\n' \
        >"$directory/TokenVaultCore/Fine.swift"
    check "$directory" || { echo "clean rooms are refused"; exit 1; }
    planted=$directory/TokenVaultFile/Planted.swift
    for violation in 'import CSodium' '@preconcurrency internal import CSodium' 'package import CLinux' \
        '@_spi(Testing) import CLinux' 'import Glibc' 'import struct Glibc.stat' 'import CSecret' \
        'import ArgumentParser' 'import Histogram' 'public import AsyncHTTPClient' 'import NIOHTTP1' 'import TokenVaultOAuth' 'internal import JWTKit' 'import Foundation' 'public import Foundation' \
        'import struct Foundation.Date' '@_exported import Foundation' 'let p: UnsafeMutableRawPointer' \
        'fatalError("no")' 'try! open()' '// TODO: later' \
        $'#if canImport(FoundationEssentials)\nimport Foundation\n#endif'
    do
        printf '%s\n' "$violation" >"$planted"
        if check "$directory" >/dev/null; then echo "passes: $violation"; exit 1; fi
    done
    exit
fi

check Sources
