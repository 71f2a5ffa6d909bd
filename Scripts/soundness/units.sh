#!/usr/bin/env bash
# Checks that systemd accepts the user units: it knows every key, and the programs that they start are installed.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# verify [SED COMMAND]: checks the installed units after a change; fails if systemd prints anything.
verify() {
    local home=$directory/home said
    rm -rf "$home" && mkdir -p "$home/run"
    chmod 700 "$home/run"
    DESTDIR='' STRIP=true Scripts/install.sh .build-release/release/vaultctl "$home/prefix" >"$directory/installed"
    grep --quiet "^$home/prefix/lib/systemd/user/tokenvault-agent.socket$" "$directory/installed" || return
    sed --in-place "${1:-}" "$home"/prefix/lib/systemd/user/*
    said=$(HOME=$home XDG_RUNTIME_DIR=$home/run SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --user --man=no \
        --recursive-errors=no "$home"/prefix/lib/systemd/user/tokenvault-agent.{socket,service} 2>&1) || {
        printf '%s\n' "$said"
        return 1
    }
    printf '%s' "$said"
    [[ -z $said ]]
}

if [[ ${1:-} == --self-test ]]; then
    for change in 's/^ListenStream=/ListenStraem=/' 's/^Type=notify/Type=tell/' 's/vaultctl-agent"/vaultctl-agnet"/' \
        's/^SystemCallFilter=.*/SystemCallFilter=@no-such-set/'
    do
        if verify "$change" >/dev/null 2>&1; then echo "passes: $change"; exit 1; fi
    done
    exit
fi

verify
