#!/usr/bin/env bash
# bench-peers.sh PROGRAMS VAULTCTL PYTHON [ITEMS…]: measures TokenVault in turn with other stores of secrets: C programs
# that call libsecret, on gnome-keyring and on libsecret's own file backend, `secret-tool`, `pass`, and Python's
# keyring. ITEMS are the numbers of items (200 2000). PYTHON is in the virtual environment that Scripts/setup --peers
# makes. Runs in Scripts/private-desktop.sh.
set -euo pipefail
programs=$(realpath "$1") vaultctl=$(realpath "$2") python=$(realpath --no-symlinks "$3")
items=("${@:4}")
[[ ${#items[@]} != 0 ]] || items=(200 2000)
cd "${BASH_SOURCE[0]%/*}/.."
: "${PRIVATE_DIRECTORY:?run this in Scripts/private-desktop.sh}"
peers=$PWD/Benchmarks/Peers results=$PRIVATE_DIRECTORY/results value=$PRIVATE_DIRECTORY/value

# shellcheck disable=SC2046
"${CC:-clang}" -O2 -o "$PRIVATE_DIRECTORY/loop" "$peers/loop.c" $(pkg-config --cflags --libs libsecret-1)
# The programs as installed: without symbols, and copied. A file that a linker has just written in pieces takes a tenth
# longer to start, until it is read from the disk again.
install_program() {
    "${STRIP:-strip}" -o "$PRIVATE_DIRECTORY/stripped" "$1"
    cp "$PRIVATE_DIRECTORY/stripped" "$PRIVATE_DIRECTORY/bin/$2"
}
mkdir -p "$PRIVATE_DIRECTORY/bin"
install_program "$vaultctl" vaultctl
install_program "$vaultctl-agent" vaultctl-agent
vaultctl=$PRIVATE_DIRECTORY/bin/vaultctl
static=(-O -static-stdlib -use-ld=lld -L .build-release/libraries "$peers/empty.swift")
swiftc "${static[@]}" -o "$PRIVATE_DIRECTORY/built"
install_program "$PRIVATE_DIRECTORY/built" empty
# The same with the other flags that the Makefile gives to the linker of vaultctl.
swiftc "${static[@]}" -o "$PRIVATE_DIRECTORY/built" -Xclang-linker -static-libgcc -Xlinker --no-export-dynamic \
    -Xlinker -z -Xlinker pack-relative-relocs
install_program "$PRIVATE_DIRECTORY/built" empty-packed

# Whole processes, with one secret each. The key has no passphrase, so that gpg-agent prompts for nothing.
printf fake-token >"$value"
export VAULTCTL_KEY_FILE=$PRIVATE_DIRECTORY/key PYTHON_KEYRING_BACKEND=keyring.backends.SecretService.Keyring
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-generate-key bench@example.org default default never
pass init bench@example.org >/dev/null
"$vaultctl" init >/dev/null
set_python=("$python" -m keyring set bench token) get_python=("$python" -m keyring get bench token)
secret_tool=(service bench account token)
"$vaultctl" store token <"$value"
secret-tool store --label=bench "${secret_tool[@]}" <"$value"
pass insert --multiline token <"$value" >/dev/null
"${set_python[@]}" <"$value"
[[ $("$vaultctl" retrieve token) == fake-token ]]
[[ $(secret-tool lookup "${secret_tool[@]}") == fake-token ]]
[[ $(pass show token) == fake-token && $("${get_python[@]}") == fake-token ]]
processes() { "$programs/command-benchmark" "$@" >>"$results"; }

processes 200 /dev/null "vaultctl retrieve, key file" "$vaultctl" retrieve token \
    -- "secret-tool lookup" 0.5 secret-tool lookup "${secret_tool[@]}"
mkdir -m 700 "$XDG_RUNTIME_DIR/tokenvault"
"$vaultctl-agent" --directory "$XDG_RUNTIME_DIR/tokenvault" &
agent=$!
trap 'kill $agent; wait $agent || true' EXIT
"$vaultctl" unlock >/dev/null
unset VAULTCTL_KEY_FILE
[[ $("$vaultctl" retrieve token) == fake-token ]]
processes 300 /dev/null "vaultctl retrieve, through the agent" "$vaultctl" retrieve token \
    -- "an empty static Swift program" 2.2 "$PRIVATE_DIRECTORY/bin/empty" \
    -- "an empty static Swift program, linked as vaultctl is" - "$PRIVATE_DIRECTORY/bin/empty-packed" \
    -- "secret-tool lookup" 0.35 secret-tool lookup "${secret_tool[@]}" \
    -- "pass show" 0.15 pass show token
processes 20 /dev/null "vaultctl retrieve, through the agent" "$vaultctl" retrieve token \
    -- "keyring get (Python)" - "${get_python[@]}"
processes 200 "$value" "vaultctl store, through the agent" "$vaultctl" store token \
    -- "secret-tool store" - secret-tool store --label=bench "${secret_tool[@]}" \
    -- "pass insert" - pass insert --multiline --force token
processes 20 "$value" "vaultctl store, through the agent" "$vaultctl" store token \
    -- "keyring set (Python)" - "${set_python[@]}"

# In processes that continue, one operation after the other.
mkdir -m 700 "$PRIVATE_DIRECTORY/loops"
"$programs/peers-benchmark" "$PRIVATE_DIRECTORY/loops" "$XDG_RUNTIME_DIR/tokenvault" "$DBUS_SESSION_BUS_ADDRESS" \
    "$PRIVATE_DIRECTORY/loop" "$python" "$peers/loop.py" "${items[@]}" >>"$results"
targets=()
[[ ${items[*]} != "200 2000" ]] || targets=(11)
Scripts/bench-table.py "$results" .build-benchmarks/peers.json "${targets[@]}"
