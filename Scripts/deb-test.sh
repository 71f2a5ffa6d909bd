#!/usr/bin/env bash
# deb-test.sh PACKAGE: installs a Debian package in a system of its own, which debootstrap makes, stores and reads a secret there,
# purges the package and looks at what it leaves. Needs root, and Debian's archive.
set -euo pipefail
[[ $# == 1 ]] || { echo "usage: deb-test.sh PACKAGE" >&2; exit 64; }
package=$(realpath -- "$1")

fail() { printf 'deb-test: %s\n' "$1" >&2; exit 1; }
[[ $(id -u) == 0 ]] || fail "a system of its own needs root: run it with sudo"
command -v debootstrap >/dev/null || fail "debootstrap is missing: run Scripts/setup --dist"
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
root=$(mktemp -d)
cleanup() {
    # After a failure, the agent may still run.
    inside env XDG_RUNTIME_DIR=/tmp/run vaultctl agent --stop >/dev/null 2>&1 || true
    umount --lazy "$root/proc" 2>/dev/null || true
    rm -f "$root.log"
    rm -rf --one-file-system "$root"
}
trap cleanup EXIT
debootstrap --variant=minbase "$codename" "$root" >"$root.log" 2>&1 || { tail -n 5 "$root.log"; fail "debootstrap failed"; }
rm -f "$root.log"
chmod 755 "$root"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
mount -t proc proc "$root/proc" 2>/dev/null || fail "no /proc can be mounted there"
# The files of the system, but for what every installation writes: the package manager's records, caches and logs.
files() { (cd "$root" && find . -path ./proc -prune -o -path ./tmp -prune -o -path ./root -prune -o \
    -path './var/lib/dpkg' -prune -o -path './var/cache' -prune -o -path './var/log' -prune -o -path ./var/lib/apt -prune -o -print | sort); }

inside apt-get install --yes --no-install-recommends bash-completion ca-certificates man-db >/dev/null 2>&1 || fail "the programs that look at the package could not be installed"
# What the package needs is there before: the difference is its own.
inside apt-get install --yes --no-install-recommends libsodium23 >/dev/null
files >"$root/tmp/before"
cp "$package" "$root/tmp/package.deb"
inside dpkg --install /tmp/package.deb >/dev/null || fail "the package does not install"
inside sh -euc '
    export HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/run
    mkdir -m 700 $HOME $XDG_RUNTIME_DIR
    vaultctl init --key-file $HOME/key >/dev/null
    printf fake-secret | vaultctl store access_token --key-file $HOME/key
    test "$(vaultctl retrieve access_token --key-file $HOME/key)" = fake-secret
    vaultctl unlock --key-file $HOME/key
    test "$(vaultctl retrieve access_token)" = fake-secret
    vaultctl agent --stop
    man vaultctl | grep -q TokenVault
    man vaultctl-store | grep -q EXAMPLES
    bash -c ". /usr/share/bash-completion/bash_completion; _completion_loader vaultctl; complete -p vaultctl" >/dev/null
    test -f /usr/lib/systemd/user/tokenvault-agent.socket
    grep -q ^ExecStart=.*/usr/bin/vaultctl-agent /usr/lib/systemd/user/tokenvault-agent.service
    # The program that signs in starts, and finds no server.
    status=0
    vaultctl login test --device --issuer https://127.0.0.1:1 --client-id fake --timeout 5 --key-file $HOME/key 2>$HOME/said || status=$?
    test $status = 8 && grep -q "server cannot be reached" $HOME/said
    vaultctl benchmark --backend memory --items 10 >/dev/null
' || fail "the installed package does not work"
[[ -z $(inside dpkg --verify tokenvault) ]] || fail "installed files are not those of the package"
inside dpkg --purge tokenvault >/dev/null || fail "the package cannot be purged"
files | diff "$root/tmp/before" - || fail "the package leaves files"
echo "deb-test: installed, worked, purged"
