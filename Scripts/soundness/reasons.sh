#!/usr/bin/env bash
# Checks that no code decides by the words of a message: reasons and codes decide, and become words in one place each.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

# Prints each line that breaks a rule; status 1 when there is one.
check() {
    local sources=$1 found=0 texts='(underlying|advice|happened|explanation|summary|nextStep)' hits
    # forbid WHY PATTERN [FOLDER…]: no line of code outside these folders matches.
    forbid() {
        local why=$1 pattern=$2 folder
        shift 2
        hits=$(grep -rnE --include='*.swift' -- "$pattern" "$sources" | grep -vE '^[^:]+:[0-9]+:[[:space:]]*//' || true)
        for folder in "$@"; do hits=$(grep -v "^$sources/$folder/" <<<"$hits" || true); done
        if [[ -n $hits ]]; then
            printf '%s\n    %s\n' "$hits" "$why"
            found=1
        fi
    }
    local calls='(hasPrefix|hasSuffix|contains|starts|firstRange|ranges|split|wholeMatch|firstMatch|prefixMatch)'
    local why='a message is compared: use the reason'
    # Calls on the text, perhaps unwrapped or changed by other calls, …
    forbid "$why" "(^|[.[:space:](!])$texts[?!)]*([[:space:]]\?\?[^)]*\))?(\.[a-z][A-Za-z]*\(\)[?!]*)*\.$calls\b"
    # … comparisons on either side, except with nil, …
    forbid "$why" "(^|[.[:space:](!])$texts[?!]*[[:space:]]*(==|!=|~=)[[:space:]]*([^n[:space:]]|n[^i]|ni[^l])"
    forbid "$why" "(==|!=|~=)[[:space:]]*[A-Za-z]+[?!]?\.$texts\b"
    # … searches for the text in another text, and switches over it.
    forbid "$why" "\.$calls\([A-Za-z]+[?!]?\.$texts\b"
    forbid "$why" "switch[[:space:]][^{]*\.$texts\b"
    forbid "$why" "(\"\\\\\\((error|failure)\\)\"|(error|failure)\\.description)\\.$calls\\b"
    # A comparison with a text of several words, whatever the other variable is. /proc has such names.
    forbid 'compared with a sentence: use a reason or a code' \
        "(hasPrefix|hasSuffix|contains|starts\(with:|==|!=|case)[[:space:]]*\(?\"[^\"]*[[:alpha:]] [[:alpha:]][^\"]*\"" \
        vaultctl-benchmark/Measuring
    forbid 'an error with a text of its own: make it a reason' '\.other\(explanation' TokenVaultCore/Errors VaultAgent/Wire
    return $found
}

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    mkdir -p "$directory"/{TokenVaultCore/Errors,TokenVaultFile,VaultAgent/Wire}
    cat >"$directory/TokenVaultFile/Fine.swift" <<'SWIFT'
// if error.advice == "try again" {}
if error.advice == nil, error.underlying != nil, error.code == .locked, name.hasPrefix("snap.") {}
case unknownKey = "unknown key"
guard case .slotWouldBeLost? = error.reason else { return "a slot would be lost" }
SWIFT
    printf 'let reason = .other(explanation: text, advice: nil)\n' | tee "$directory/VaultAgent/Wire/Fine.swift" \
        >"$directory/TokenVaultCore/Errors/Fine.swift"
    check "$directory" || { echo "sound code is refused"; exit 1; }
    planted=$directory/TokenVaultFile/Planted.swift
    for violation in 'if error.advice?.hasPrefix(word) == true {}' 'if underlying.hasSuffix(lost) {}' \
        'if failure.happened.contains(word) {}' 'if error.underlying == AgentEndpoint.closed {}' \
        'if error.advice != "try again" {}' 'if error.underlying == noAgent {}' \
        'if AgentEndpoint.closed == error.underlying {}' 'if known.contains(error.advice) {}' \
        'if error.underlying?.lowercased().contains(word) == true {}' 'if (error.underlying ?? "").hasPrefix(word) {}' \
        'switch error.underlying {' 'if "\(error)".contains(word) {}' 'if error.description.hasSuffix(word) {}' 'where reason.hasPrefix("no device key at"):' \
        'case "the issuer (with a slash at its end)":' 'if text == "vault is gone" {}' \
        'throw .file(.locked, .other(explanation: "words", advice: nil))'
    do
        printf '%s\n' "$violation" >"$planted"
        if check "$directory" >/dev/null; then echo "passes: $violation"; exit 1; fi
    done
    exit
fi

check Sources
