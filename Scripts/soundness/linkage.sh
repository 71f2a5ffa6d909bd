#!/usr/bin/env bash
# Checks that the programs link libsodium and the C library, and no Foundation, NIO, HTTP client, JWT, histogram or
# GLib, although the trait for those is on. Neither the shared libraries nor their statically linked code may be there.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

check() {
    local program=$1 found=0 libraries modules
    libraries=$(readelf --dynamic --wide "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' \
        | grep -vE '^(libsodium|libc|libm|libpthread|libdl|libgcc_s|libstdc\+\+|ld-linux[^/]*)\.so' || true)
    if [[ -n $libraries ]]; then
        printf '%s links %s\n' "$program" "${libraries//$'\n'/ }"
        found=1
    fi
    # A Swift symbol begins with the module's name: $s, its length, its name.
    modules=$(nm "$program" \
        | grep -oE ' (\$s(10Foundation|26FoundationInternationalization|9Histogram|10RealModule|7NIOCore|8NIOPosix|8NIOHTTP1|6NIOSSL|15AsyncHTTPClient|6JWTKit|6Crypto|15TokenVaultOAuth)|C(NIO|Crypto)BoringSSL)' \
        | sort | uniq -c || true)
    if [[ -n $modules ]]; then
        printf '%s contains symbols of\n%s\n' "$program" "$modules"
        found=1
    fi
    return $found
}

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    printf 'print(1)\n' >"$directory/fine.swift"
    printf 'import Foundation\nprint(ProcessInfo.processInfo.processName)\n' >"$directory/planted.swift"
    for file in fine planted; do
        swiftc -static-stdlib -use-ld=lld -o "$directory/$file" "$directory/$file.swift"
    done
    check "$directory/fine" || { echo "a program without Foundation is refused"; exit 1; }
    if check "$directory/planted" >/dev/null; then echo "a static Foundation passes"; exit 1; fi
    swiftc -o "$directory/planted" "$directory/planted.swift"
    if check "$directory/planted" >/dev/null; then echo "a shared Foundation passes"; exit 1; fi
    for module in Histogram RealModule NIOCore NIOSSL AsyncHTTPClient JWTKit Crypto TokenVaultOAuth; do
        printf 'public func planted() {}\n' >"$directory/planted.swift"
        swiftc -parse-as-library -emit-library -static -module-name "$module" -o "$directory/lib$module.a" \
            -emit-module -emit-module-path "$directory/$module.swiftmodule" "$directory/planted.swift"
        printf 'import %s\nplanted()\n' "$module" >"$directory/planted.swift"
        swiftc -static-stdlib -use-ld=lld -o "$directory/planted" -I "$directory" -L "$directory" \
            "$directory/planted.swift" "$directory/lib$module.a"
        if check "$directory/planted" >/dev/null; then echo "a static $module passes"; exit 1; fi
    done
    exit
fi

# vaultctl-oauth contains all of these modules, and vaultctl-benchmark contains the histogram.
check .build-release/release/vaultctl
check .build-release/release/vaultctl-agent
