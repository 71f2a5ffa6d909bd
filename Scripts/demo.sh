#!/usr/bin/env bash
# Demonstrates the main use with the given vaultctl, in a temporary home: each command as a user would type it, and its
# output. Stops with status 1 at the first step with another result.
set -uo pipefail

given=${1:?usage: demo.sh VAULTCTL}
[[ -x $given ]] || { echo "demo: $given is not a program" >&2; exit 1; }
binary=$(realpath --no-symlinks "$given")

HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
export HOME XDG_DATA_HOME="$HOME/.local/share" XDG_STATE_HOME="$HOME/.local/state" XDG_RUNTIME_DIR="$HOME/run"
export PATH="${binary%/*}:$PATH"
unset "${!VAULTCTL_@}"
mkdir -m 700 "$XDG_RUNTIME_DIR"
cd "$HOME" || exit 1
umask 077

if [[ -t 1 ]] && [[ -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '\n%s\n' "# $*"; }

# step STATUS COMMAND [PATTERN]: runs COMMAND, and shows it with its output. Stops unless it ends with STATUS and, if a
# PATTERN is given, prints a line that matches it.
step() {
    local expected=$1 command=$2 pattern=${3:-} answer status
    printf '%s$ %s%s\n' "$bold" "$command" "$plain"
    answer=$(eval "$command" 2>&1)
    status=$?
    [[ -z $answer ]] || printf '%s\n' "$answer"
    [[ $expected == 0 ]] || printf '%s$ echo $?%s\n%s\n' "$bold" "$plain" "$status"
    if [[ $status != "$expected" ]]; then
        printf 'demo: exit status %s, expected %s\n' "$status" "$expected" >&2
        exit 1
    elif [[ -n $pattern ]] && ! grep --quiet --extended-regexp -- "$pattern" <<<"$answer"; then
        printf 'demo: no line of the answer matches %s\n' "$pattern" >&2
        exit 1
    fi
}

echo 'correct horse battery staple' >passphrase.txt
echo 'a guess' >wrong.txt
export VAULTCTL_PASSPHRASE_FILE=passphrase.txt VAULTCTL_SERVICE=com.example.app

say "A vault, opened by a passphrase (asked for on a terminal; here it is in passphrase.txt)"
step 0 'vaultctl init'
say "Store a token, from standard input"
step 0 'echo "fake-token-1" | vaultctl store access_token --label "Example"'
step 0 'vaultctl list' '^access_token'
step 0 'vaultctl retrieve access_token' '^fake-token-1$'
say "Nothing of it can be read in the file"
step 1 'grep -c -e fake-token -e access_token ~/.local/share/tokenvault/default.vault' '^0$'
say "A wrong passphrase is refused, and does not look like \"not there\""
step 5 'vaultctl retrieve access_token --passphrase-file wrong.txt'
say "Replace it"
step 0 'echo "fake-token-2" | vaultctl store access_token'
step 0 'vaultctl retrieve access_token' '^fake-token-2$'
step 0 'vaultctl info access_token' 'Example'
say "Delete it"
step 0 'vaultctl delete access_token'
step 3 'vaultctl retrieve access_token'
say "Check every byte of the vault"
step 0 'vaultctl verify'
step 0 'vaultctl status' 'unlocked'

printf '\nAll of this ran in a throw-away vault, which is gone now. The program is\n  %s\n' "$given"
printf '`make install PREFIX="$HOME/.local"` installs it; `vaultctl help` tells the rest.\n'
