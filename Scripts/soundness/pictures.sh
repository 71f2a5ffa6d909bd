#!/usr/bin/env bash
# The pictures of the README and of the documentation are those that Scripts/draw-architecture.py draws, and they name the modules
# and programs of Package.swift.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

pictures=(Documentation/architecture.svg Sources/TokenVault/Documentation.docc/{architecture,keys}.svg)
# check [ROOT]: status 1 when a picture is another one.
check() { /usr/bin/python3 -B "${1:-.}/Scripts/draw-architecture.py" --check; }

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    plant() {
        rm -rf "$directory/copy"
        mkdir "$directory/copy"
        cp --parents Package.swift Scripts/draw-architecture.py "${pictures[@]}" "$directory/copy"
    }
    plant
    check "$directory/copy" || { echo "the committed pictures are refused"; exit 1; }
    for picture in "${pictures[@]}"; do
        plant
        printf '\n' >>"$directory/copy/$picture"
        if check "$directory/copy" 2>/dev/null; then echo "a changed picture passes: $picture"; exit 1; fi
        rm "$directory/copy/$picture"
        if check "$directory/copy" 2>/dev/null; then echo "a missing picture passes: $picture"; exit 1; fi
    done
    plant
    sed -i 's/TokenVaultDesktop/TokenVaultKeyring/' "$directory/copy/Package.swift"
    if check "$directory/copy" 2>/dev/null; then echo "a module of another name passes"; exit 1; fi
    plant
    sed -i '0,/\.library(name: "VaultAgent"/s//.library(name: "VaultOther", targets: []),\n&/' "$directory/copy/Package.swift"
    if check "$directory/copy" 2>/dev/null; then echo "a product that no picture names passes"; exit 1; fi
    exit
fi

check
