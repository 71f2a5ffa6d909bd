#!/usr/bin/env bash
# install.sh VAULTCTL PREFIX: installs the program, the agent beside it, its units for systemd, the programs that sign in and
# that measure (libexec/tokenvault), completions and manual pages below PREFIX, which is below $DESTDIR.
# install.sh --remove PREFIX: removes them.
# install.sh --pages: prints the names of the manual pages.
set -euo pipefail

# The manual pages that this or an earlier version installs. A pattern could remove the pages of another package. A page of a
# command that is gone stays in the list, so that the next version removes it.
pages=(vaultctl)
for command in adopt agent benchmark compact delete destroy device{,-list,-enrol,-remove} export history import info init \
    keyring{,-create} list lock login logout merge migrate passphrase profiles rename restore retrieve salvage set \
    slot{,-list,-add,-remove} status store token undo unlock verify
do
    pages+=("vaultctl-$command")
done

usage() { echo "usage: install.sh VAULTCTL PREFIX | install.sh --remove PREFIX | install.sh --pages" >&2; exit 64; }
if [[ $# == 1 && $1 == --pages ]]; then
    printf '%s\n' "${pages[@]}"
    exit
fi
[[ $# == 2 && -n $2 ]] || usage
prefix=${DESTDIR:-}$2

program=$prefix/bin/vaultctl
agent=$prefix/bin/vaultctl-agent
oauth=$prefix/libexec/tokenvault/vaultctl-oauth
benchmark=$prefix/libexec/tokenvault/vaultctl-benchmark
manuals=$prefix/share/man/man1
manual=()
for page in "${pages[@]}"; do manual+=("$manuals/$page.1"); done
# In a home directory, systemd reads units from another place.
units=$prefix/lib/systemd/user
resolved() { realpath --canonicalize-missing --no-symlinks -- "$1"; }
[[ $(resolved "$2") != "$(resolved "${HOME:-/}/.local")" ]] || units=$prefix/share/systemd/user
socket=$units/tokenvault-agent.socket
service=$units/tokenvault-agent.service
declare -A completions=(
    [bash]=$prefix/share/bash-completion/completions/vaultctl
    [zsh]=$prefix/share/zsh/site-functions/_vaultctl
    [fish]=$prefix/share/fish/vendor_completions.d/vaultctl.fish
)

if [[ $1 == --remove ]]; then
    rm -f -- "$program" "$agent" "$oauth" "$benchmark" "$socket" "$service" "${manual[@]}" "${completions[@]}"
    rmdir -- "${oauth%/*}" 2>/dev/null || true
    exit
fi

for built in "$1" "$1-agent" "$1-oauth" "$1-benchmark"; do
    [[ -x $built ]] || { echo "install: $built is missing: run make release first" >&2; exit 1; }
done
[[ -x /usr/bin/python3 ]] || { echo "install: there is no /usr/bin/python3, which makes the manual pages: install python3" >&2; exit 1; }
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
mkdir "$generated/manual"
/usr/bin/python3 -B "${0%/*}/manual.py" "$generated/manual" "$1"
for page in "$generated"/manual/*.1; do
    name=${page##*/}
    [[ " ${pages[*]} " == *" ${name%.1} "* ]] || { echo "install: the list of pages in install.sh lacks ${name%.1}: add it" >&2; exit 1; }
done

# Symbols are half of the program's size; `STRIP=true` keeps them.
"${0%/*}/strip-program.sh" "$1" "$program"
"${0%/*}/strip-program.sh" "$1-agent" "$agent"
"${0%/*}/strip-program.sh" "$1-oauth" "$oauth"
"${0%/*}/strip-program.sh" "$1-benchmark" "$benchmark"
rm -f -- "${manual[@]}"
for page in "$generated"/manual/*.1; do install -D --mode=644 -- "$page" "$manuals/${page##*/}"; done
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
printf '%s\n' "$program" "$agent" "$oauth" "$benchmark" "$socket" "$service" "${completions[@]}"
for page in "$generated"/manual/*.1; do printf '%s\n' "$manuals/${page##*/}"; done
