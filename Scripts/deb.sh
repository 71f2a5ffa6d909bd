#!/usr/bin/env bash
# deb.sh VAULTCTL OUTPUT: writes a Debian package with the programs, manual, completions and units into the directory OUTPUT.
# The same programs and the same commit give the same bytes. DEBFULLNAME and DEBEMAIL name the maintainer, as Debian's tools
# read them.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
# The same bytes under any settings of the caller.
export LC_ALL=C
unset TAR_OPTIONS GZIP DPKG_DEB_COMPRESSOR_TYPE DPKG_DEB_COMPRESSOR_LEVEL

[[ $# == 2 ]] || { echo "usage: deb.sh VAULTCTL OUTPUT" >&2; exit 64; }
program=$1 output=$2
version=$("$program" --version | sed -n 's/^vaultctl \([0-9][^ ]*\).*/\1/p')
[[ -n $version ]] || { echo "deb: $program does not say its version" >&2; exit 1; }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# mktemp makes a directory for its owner alone; that of the package is everyone's.
root=$work/root
install -d --mode=755 "$root" "$root/DEBIAN" "$work/debian"

DESTDIR=$root Scripts/install.sh "$program" /usr >/dev/null
# Debian has completions of zsh elsewhere, and packs manuals and changelogs.
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_vaultctl" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
documents=$root/usr/share/doc/tokenvault
install -D --mode=644 --target-directory="$documents" README.md SECURITY.md
install -D --mode=644 CHANGELOG.md "$documents/changelog"
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: TokenVault\n\n'
    printf 'Files: *\nCopyright: %s\nLicense: Expat\n' "$(sed -n 's/^Copyright (c) //p' LICENSE)"
    sed '1,/^Copyright/d; /./,$!d; s/^$/./; s/^/ /' LICENSE
} >"$documents/copyright"
# Besides the project's own code, the programs contain that of these packages.
Scripts/licenses.sh .build-release "$documents/third-party-licenses.txt"
gzip -n -9 "$documents/changelog" "$documents/third-party-licenses.txt"
find "$root/usr/share/man" -type f -exec gzip -n -9 {} +
chmod -R u=rwX,go=rX "$root"

# Whatever else the programs needed would be missing in another system.
for needed in $(readelf --dynamic "$root"/usr/bin/* "$root"/usr/libexec/tokenvault/* | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u); do
    case $needed in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | libsodium.so.23 | libz.so.1 | ld-linux-*) ;;
    *) echo "deb: the programs need $needed, which the package does not depend on" >&2; exit 1 ;;
    esac
done
printf 'Source: tokenvault\n\nPackage: tokenvault\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O "$root"/usr/bin/* "$root"/usr/libexec/tokenvault/* | sed -n 's/^shlibs:Depends=//p')
[[ $libraries == *libsodium* ]] || { echo "deb: the programs do not need libsodium: $libraries" >&2; exit 1; }
# Debian's symbols say when a function came; what the programs are tested with is 1.0.18.
libraries=$(printf '%s\n' "$libraries" | sed 's/libsodium23 ([^)]*)/libsodium23 (>= 1.0.18)/')
cat >"$root/DEBIAN/control" <<CONTROL
Package: tokenvault
Version: $version
Architecture: $architecture
Maintainer: ${DEBFULLNAME:-The TokenVault authors} <${DEBEMAIL:-root@localhost}>
Installed-Size: $(find "$root/usr" -type f -printf '%s\n' | awk '{ size += int(($1 + 1023) / 1024) } END { print size }')
Depends: $libraries
Recommends: ca-certificates, libsecret-1-0
Suggests: gnome-keyring, pinentry-curses
Section: utils
Priority: optional
Description: encrypted vault for tokens and other secrets
 vaultctl keeps tokens and other secrets in an encrypted file, or in the
 keyring of the desktop. An agent holds the vault unlocked for the programs
 of one user. vaultctl signs in at OAuth and OpenID Connect providers and
 prints access tokens that are valid.
CONTROL
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root"/DEBIAN/*
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$output"
# A package of an earlier version would be taken for this one.
rm -f -- "$output"/tokenvault_*.deb
package=$output/tokenvault_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z6 --build "$root" "$package" >/dev/null
printf '%s\n' "$package"
