#!/usr/bin/env bash
# crash-test.sh VAULTCTL [ROUNDS]: starts a command that changes a vault, kills it (SIGKILL) at a random moment, and
# checks the vault. Every key holds its last acknowledged value, or the value of the write that was killed. The vault
# has no other item, and every byte verifies. Runs some thousand rounds on the real file system.
set -uo pipefail

vaultctl=$(realpath "${1:?usage: crash-test.sh VAULTCTL [ROUNDS]}")
rounds=${2:-${ROUNDS:-3000}}
seed=${SEED:-$RANDOM}
RANDOM=$seed

directory=$(mktemp -d "${TMPDIR:-/var/tmp}/crash-test.XXXXXX")
trap 'rm -rf "$directory"' EXIT
export VAULTCTL_VAULT=$directory/test.vault VAULTCTL_STATE_DIR=$directory/state
export VAULTCTL_KEY_FILE=$directory/key VAULTCTL_SERVICE=crash-test
unset VAULTCTL_PASSPHRASE_FILE VAULTCTL_BACKEND
exec {never}<> <(:) # a descriptor that never has anything to read: `read -t` on it waits without a process

fail() {
    printf 'crash-test: round %s, seed %s: %s\n' "$round" "$seed" "$*" >&2
    "$vaultctl" verify >&2
    trap - EXIT
    printf 'the vault is in %s\n' "$directory" >&2
    exit 1
}

round=0
"$vaultctl" init >/dev/null || fail "init failed"
declare -A value # of each key; unset when it is absent
keys=(one two three four five six seven eight)
large=$(printf '%06000d' 0)

# Measures the length of a store in microseconds: kills come within a little more than that.
start=${EPOCHREALTIME/./}
for _ in {1..20}; do echo warm-up | "$vaultctl" store "${keys[0]}" >/dev/null || fail "a store failed"; done
length=$(((${EPOCHREALTIME/./} - start) / 20))
value[${keys[0]}]=warm-up

# seen KEY: sets $now to the value under KEY, and $there to 0, or to 3 without one.
seen() {
    now=$("$vaultctl" retrieve "$1" 2>"$directory/said")
    there=$?
    [[ $there == 0 || $there == 3 ]] || fail "retrieve $1: exit status $there: $(<"$directory/said")"
}
# holds KEY: succeeds if KEY has its acknowledged value.
holds() {
    seen "$1"
    if [[ -v value[$1] ]]; then [[ $there == 0 && $now == "${value[$1]}" ]]; else [[ $there == 3 ]]; fi
}
check_all() {
    local key
    "$vaultctl" verify >/dev/null || fail "verify: exit status $?"
    for key in "${keys[@]}"; do holds "$key" || fail "$key is not as it was acknowledged"; done
    [[ $("$vaultctl" list | wc -l) == "${#value[@]}" ]] || fail "list shows what nobody stored"
}

killed=0 acknowledged=0 unacknowledged=0
for ((round = 1; round <= rounds; round++)); do
    key=${keys[RANDOM % ${#keys[@]}]} new=value-$round
    case $((RANDOM % 10)) in
    0) change=(compact) ;;
    1 | 2) change=(delete "$key" --ignore-missing) ;;
    3) change=(store "$key") new=$new-$large ;;
    *) change=(store "$key") ;;
    esac
    "$vaultctl" "${change[@]}" <<<"$new" >/dev/null 2>&1 &
    writer=$!
    read -r -t "$(printf '0.%06d' $((RANDOM * length * 5 / 4 / 32768)))" -u "$never"
    kill -KILL "$writer" 2>/dev/null
    wait "$writer" 2>/dev/null
    status=$?

    case $status in
    0) acknowledged=$((acknowledged + 1)) ;;
    137) killed=$((killed + 1)) ;;
    *) fail "${change[*]}: exit status $status" ;;
    esac
    if [[ $status == 137 ]] && ! holds "$key"; then
        # The kill came after the write, so the whole value is there.
        unacknowledged=$((unacknowledged + 1))
        status=0
    fi
    if [[ $status == 0 ]]; then
        case ${change[0]} in
        store) value[$key]=$new ;;
        delete) unset "value[$key]" ;;
        esac
    fi
    holds "$key" || fail "$key is neither what was acknowledged nor what was being written (${change[*]:0:2})"
    ((round % 50 != 0)) || check_all
    if [[ -t 2 ]] && ((round % 20 == 0)); then printf '\r%s of %s rounds' "$round" "$rounds" >&2; fi
done
[[ ! -t 2 ]] || printf '\r' >&2
round=$rounds
check_all
[[ $killed -gt $((rounds / 10)) && $unacknowledged -gt 0 ]] \
    || fail "the kills missed: $killed killed, $unacknowledged of them after writing"
printf '%s rounds (seed %s): %s killed, %s of them after they had written; %s acknowledged; nothing lost\n' \
    "$rounds" "$seed" "$killed" "$unacknowledged" "$acknowledged"
