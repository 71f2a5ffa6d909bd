#!/usr/bin/env bash
# dist.sh VAULTCTL OUTPUT: writes what a release consists of into the directory OUTPUT: the sources with the pins of their
# dependencies, the installed programs, a bill of materials (CycloneDX) and checksums. The same programs and the
# same commit give the same bytes.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
# The same bytes under any settings of the caller.
export LC_ALL=C
unset TAR_OPTIONS GZIP DPKG_DEB_COMPRESSOR_TYPE DPKG_DEB_COMPRESSOR_LEVEL

fail() { printf 'dist: %s\n' "$1" >&2; exit 1; }
[[ $# == 2 ]] || { echo "usage: dist.sh VAULTCTL OUTPUT" >&2; exit 64; }
program=$1 output=$2
[[ -z $(git status --porcelain) ]] || fail "files are changed or not in a commit: commit them first"
/usr/bin/python3 -I -B Scripts/pins.py check .build-release || fail "the programs are not built with the packages of Scripts/tested-versions.txt: run make release again"

version=$("$program" --version | sed -n 's/^vaultctl \([0-9][^ ]*\).*/\1/p')
[[ -n $version ]] || fail "$program does not say its version"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
name=tokenvault-$version
programs=$name-linux-$(uname -m)
rm -rf "$output"
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The archive has the pins as a file, with which `swift build --force-resolved-versions` takes the same packages.
/usr/bin/python3 -I -B Scripts/pins.py write
git -c tar.umask=0022 -c core.autocrlf=false archive --format=tar --prefix="$name/" --add-file=Package.resolved HEAD | gzip -n -9 >"$output/$name.tar.gz"

prefix=/usr/local
DESTDIR=$work/installed Scripts/install.sh "$program" "$prefix" >/dev/null
mv "$work/installed$prefix" "$work/$programs"
install -D --mode=644 --target-directory="$work/$programs/share/doc/tokenvault" LICENSE README.md CHANGELOG.md SECURITY.md
Scripts/licenses.sh .build-release "$work/$programs/share/doc/tokenvault/third-party-licenses.txt"
tar --create --format=gnu --directory="$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX "$programs" | gzip -n -9 >"$output/$programs.tar.gz"

swift package --scratch-path .build-release --traits OAuth show-dependencies --format json \
    | /usr/bin/python3 -I -B Scripts/sbom.py "$version" Package.resolved >"$output/$name.cdx.json"

(cd "$output" && sha256sum -- * >"$work/sums")
mv "$work/sums" "$output/SHA256SUMS"
chmod 644 "$output"/*
printf '%s\n' "$output"/*
