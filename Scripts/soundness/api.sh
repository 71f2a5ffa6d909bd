#!/usr/bin/env bash
# The public API breaks nothing that the newest release of the same major and minor version has: such a break needs a new minor
# version, and a line in the changelog. A release is a tag such as 0.1.0.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

# newest_release VERSION, of the tags on standard input: the newest of the same major and minor version.
newest_release() { local pattern=${1%.*}; {  grep -E "^${pattern/./\\.}\.[0-9]+$" || true; } | sort --version-sort | tail -n 1; }
breaking_changes() { swift package --disable-sandbox "$@" diagnose-api-breaking-changes "$release" 2>&1; }

if [[ ${1:-} == --self-test ]]; then
    [[ $(printf '%s\n' 0.1.9 0.1.10 0.2.0 1.1.0 v0.1.11 0x1.12 0.1.10-beta | newest_release 0.1.0) == 0.1.10 ]] \
        || { echo "the newest release is not found"; exit 1; }
    [[ -z $(printf '%s\n' 0.2.0 | newest_release 0.1.0) ]] || { echo "a release of another minor version counts"; exit 1; }
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    cd "$directory"
    mkdir -p Sources/Sample
    cat >Package.swift <<'SWIFT'
// swift-tools-version: 6.2
import PackageDescription
let package = Package(
    name: "Sample", products: [.library(name: "Sample", targets: ["Sample"])], targets: [.target(name: "Sample")])
SWIFT
    echo 'public func one() {}' >Sources/Sample/Sample.swift
    git init --quiet
    git -c user.name=Sample -c user.email=sample@localhost add .
    git -c user.name=Sample -c user.email=sample@localhost commit --quiet --message Sample
    git tag 0.1.0
    release=0.1.0
    echo 'public func two() {}' >>Sources/Sample/Sample.swift
    output=$(breaking_changes) || { echo "an addition counts as a break: $output"; exit 1; }
    echo 'public func two() {}' >Sources/Sample/Sample.swift
    if output=$(breaking_changes); then echo "a removed function passes: $output"; exit 1; fi
    grep -q 'func one() has been removed' <<<"$output" || { echo "the removed function is not named: $output"; exit 1; }
    exit
fi

version=$(sed -n 's/.*static let version = "vaultctl \([0-9.]*\)".*/\1/p' Sources/vaultctl/Commands/VaultControl.swift)
[[ -n $version ]] || { echo "the version of the programs was not found"; exit 1; }
release=$(git tag --list | newest_release "$version")
[[ -n $release ]] || { echo "no release of ${version%.*} is tagged yet"; exit 77; }
breaking_changes --scratch-path .build-all --traits OAuth
