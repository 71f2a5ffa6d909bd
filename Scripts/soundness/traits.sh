#!/usr/bin/env bash
# Checks a client without the trait `OAuth`: it resolves no package that only TokenVaultOAuth and vaultctl-benchmark
# need, and the module TokenVaultOAuth is empty for it. The programs also compile without the trait, although the tests
# build them with it.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."
root=$PWD

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# resolved TRAITS: prints the packages that a client with these traits resolves and checks out, except ours.
resolved() {
    rm -rf "$directory/client"
    mkdir -p "$directory/client/Sources/client" "$directory/package"
    ln -sfn "$root/Package.swift" "$root/Sources" "$root/Tests" "$directory/package/"
    printf 'import TokenVaultAuth\n' >"$directory/client/Sources/client/client.swift"
    cat >"$directory/client/Package.swift" <<SWIFT
// swift-tools-version: 6.2
import PackageDescription
let package = Package(
    name: "client",
    dependencies: [.package(name: "TokenVault", path: "$directory/package", traits: [$1])],
    targets: [
        .target(
            name: "client",
            dependencies: [
                .product(name: "TokenVaultAuth", package: "TokenVault"),
                .product(name: "TokenVaultOAuth", package: "TokenVault"),
            ])
    ])
SWIFT
    swift package --package-path "$directory/client" resolve >"$directory/said" 2>&1 || { cat "$directory/said"; return 1; }
    ls "$directory/client/.build/checkouts"
}
# guarded FOLDER: every file in it is empty without the trait.
guarded() {
    local file found=0
    while IFS= read -r file; do
        if [[ $(head -n 1 "$file") != '#if OAuth' || $(tail -n 1 "$file") != '#endif' ]]; then
            printf '%s: is not all inside #if OAuth\n' "$file"
            found=1
        fi
    done < <(find "$1" -name '*.swift')
    find "$1" -name '*.swift' -exec swiftc -typecheck -swift-version 6 {} + || found=1
    return $found
}

# without_trait FOLDER: type-checks the program in FOLDER without the trait.
without_trait() {
    # shellcheck source=../module-flags.sh
    source Scripts/module-flags.sh
    local package
    package=$(grep -oP --max-count=1 '"-module-name","TokenVaultPlatform".*?"-package-name","\K[^"]*' .build-all/debug.yaml)
    [[ -e $1/main.swift ]] || module_flags+=(-parse-as-library)
    find "$1" -name '*.swift' -exec swiftc -typecheck -swift-version 6 -enable-upcoming-feature InternalImportsByDefault \
        -package-name "$package" "${module_flags[@]}" {} + \
        >"$directory/said" 2>&1 || { cat "$directory/said"; return 1; }
}

if [[ ${1:-} == --self-test ]]; then
    with=$(resolved "\"OAuth\"") || { printf "%s\n" "$with"; exit 1; }
    [[ $with == *swift-nio* && $with == *jwt-kit* && $with == *hdrhistogram* ]] || { printf 'the trait does not bring NIO, jwt-kit and hdrhistogram:\n%s\n' "$with"; exit 1; }
    mkdir "$directory/planted"
    printf '#if OAuth\nimport NoSuchModule\n#endif\n' >"$directory/planted/a.swift"
    guarded "$directory/planted" || { echo "a file inside the trait is refused"; exit 1; }
    printf 'let planted = 1\n' >"$directory/planted/a.swift"
    if guarded "$directory/planted" >/dev/null; then echo "a file outside the trait passes"; exit 1; fi
    printf '#if OAuth\n#endif\nimport NoSuchModule\n#if OAuth\n#endif\n' >"$directory/planted/a.swift"
    if guarded "$directory/planted" >/dev/null 2>&1; then echo "a line outside the trait passes"; exit 1; fi
    printf '#if OAuth\n#else\nlet planted: NoSuchType? = nil\n#endif\n' >"$directory/planted/a.swift"
    if without_trait "$directory/planted" >/dev/null; then echo "a program that needs the trait passes"; exit 1; fi
    exit
fi

without=$(resolved "") || { printf "%s\n" "$without"; exit 1; }
expected=$'swift-argument-parser\nswift-system'
if [[ $without != "$expected" ]]; then
    printf 'a client without the trait resolves\n%s\n' "$without"
    exit 1
fi
guarded Sources/TokenVaultOAuth
guarded Tests/TokenVaultOAuthTests
for program in Sources/vaultctl-oauth Sources/vaultctl-benchmark Tests/Support/RefreshWorker; do without_trait "$program"; done
