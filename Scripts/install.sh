#!/usr/bin/env bash
# install.sh VAULTCTL PREFIX: installs the program, the agent beside it, its units for systemd, the programs that sign
# in and that measure (libexec/tokenvault), completions and manual below PREFIX, which is below $DESTDIR.
# install.sh --remove PREFIX: removes them.
set -euo pipefail

usage() { echo "usage: install.sh VAULTCTL PREFIX | install.sh --remove PREFIX" >&2; exit 64; }
[[ $# == 2 && -n $2 ]] || usage
prefix=${DESTDIR:-}$2

program=$prefix/bin/vaultctl
agent=$prefix/bin/vaultctl-agent
oauth=$prefix/libexec/tokenvault/vaultctl-oauth
benchmark=$prefix/libexec/tokenvault/vaultctl-benchmark
manual=$prefix/share/man/man1/vaultctl.1
# In a home directory, systemd reads units from another place.
units=$prefix/lib/systemd/user
[[ $2 != "${HOME:-}/.local" ]] || units=$prefix/share/systemd/user
socket=$units/tokenvault-agent.socket
service=$units/tokenvault-agent.service
declare -A completions=(
    [bash]=$prefix/share/bash-completion/completions/vaultctl
    [zsh]=$prefix/share/zsh/site-functions/_vaultctl
    [fish]=$prefix/share/fish/vendor_completions.d/vaultctl.fish
)

if [[ $1 == --remove ]]; then
    rm -f -- "$program" "$agent" "$oauth" "$benchmark" "$socket" "$service" "$manual" "${completions[@]}"
    rmdir -- "${oauth%/*}" 2>/dev/null || true
    exit
fi

[[ -x $1 && -x $1-agent && -x $1-oauth && -x $1-benchmark ]] || { echo "install: $1 is not there: run make release first" >&2; exit 1; }
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT

# Symbols are half of the program's size; `STRIP=true` keeps them.
install -D --mode=755 --strip --strip-program="${STRIP:-strip}" -- "$1" "$program"
install -D --mode=755 --strip --strip-program="${STRIP:-strip}" -- "$1-agent" "$agent"
install -D --mode=755 --strip --strip-program="${STRIP:-strip}" -- "$1-oauth" "$oauth"
install -D --mode=755 --strip --strip-program="${STRIP:-strip}" -- "$1-benchmark" "$benchmark"
install -D --mode=644 -- "${0%/*}/../Documentation/vaultctl.1" "$manual"
# The path of the agent as a quoted word of a unit.
place=$(realpath --canonicalize-missing --no-symlinks -- "$2/bin")
place=${place//\\/\\\\}
place=${place//\"/\\\"}
place=${place//%/%%}
install -D --mode=644 -- "${0%/*}/systemd/tokenvault-agent.socket" "$socket"
BINDIR=$place awk '{ at = index($0, "@bindir@"); if (at) $0 = substr($0, 1, at - 1) ENVIRON["BINDIR"] substr($0, at + 8) }
    { print }' "${0%/*}/systemd/tokenvault-agent.service" >"$generated/service"
install -D --mode=644 -- "$generated/service" "$service"
for shell in "${!completions[@]}"; do
    "$program" --generate-completion-script "$shell" >"$generated/$shell"
    install -D --mode=644 -- "$generated/$shell" "${completions[$shell]}"
done
printf '%s\n' "$program" "$agent" "$oauth" "$benchmark" "$socket" "$service" "$manual" "${completions[@]}"
