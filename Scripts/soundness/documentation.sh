#!/usr/bin/env bash
# Checks that the documentation builds without warnings: every link in it leads somewhere.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

if [[ ${1:-} == --self-test ]]; then
    mkdir "$directory/Planted.docc"
    printf '# ``TokenVault``\n\nA keychain: ``TokenStorage``.\n' >"$directory/Planted.docc/TokenVault.md"
    Scripts/docs.sh "$directory/output" "$directory/Planted.docc" || { echo "a clean page is refused"; exit 1; }
    printf '# ``TokenVault``\n\nSee ``NoSuchType``.\n' >"$directory/Planted.docc/TokenVault.md"
    if Scripts/docs.sh "$directory/output" "$directory/Planted.docc" >/dev/null 2>&1; then
        echo "a link to nowhere passes"; exit 1
    fi
    exit
fi

Scripts/docs.sh "$directory/output"
for module in TokenVaultAuth TokenVaultOAuth TokenVaultTesting VaultAgent; do
    Scripts/docs.sh "$directory/$module" "Sources/$module/Documentation.docc" "$module"
done
