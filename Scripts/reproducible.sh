#!/usr/bin/env bash
# Compares the programs byte for byte with those of a build in another directory. That takes minutes. PROGRAMS='vaultctl
# vaultctl-agent vaultctl-oauth vaultctl-benchmark' compares all four. The check fails now and then: a few functions use other
# registers, because the order of the compiler's work still depends on the addresses of its data.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# same PROGRAM OTHER: whether the two are equal as they are installed.
same() {
    Scripts/strip-program.sh "$1" "$directory/one"
    Scripts/strip-program.sh "$2" "$directory/two"
    cmp "$directory/one" "$directory/two" || { echo "$1 depends on the directory that it is built in"; return 1; }
}

if [[ ${1:-} == --self-test ]]; then
    for place in a b/c; do
        mkdir -p "$directory/$place"
        echo 'int main(int count, char **words) { return __FILE__[count] == **words; }' >"$directory/$place/main.c"
        for kind in plain mapped; do
            map=()
            [[ $kind == plain ]] || map=(-ffile-prefix-map="$directory/$place=.")
            clang "${map[@]}" -o "$directory/$place/$kind" "$directory/$place/main.c"
        done
    done
    same "$directory/a/mapped" "$directory/b/c/mapped" || { echo "equal programs are refused"; exit 1; }
    if same "$directory/a/plain" "$directory/b/c/plain" >/dev/null 2>&1; then echo "the directory's name passes"; exit 1; fi
    exit
fi

setarch -R true 2>/dev/null || { echo "the kernel's choice of addresses cannot be turned off here, so each build is a little different"; exit 77; }
read -r -a programs <<<"${PROGRAMS:-vaultctl vaultctl-agent}"
other=$directory/another/place/of/its/own
mkdir -p "$other"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory="$other"
# The programs that sign in and measure have stamps of their own.
target=.build-release/release/vaultctl.stamp
[[ ${#programs[@]} == 2 ]] || target=release
make --no-print-directory -C "$other" "$target" >"$directory/log" 2>&1 || { tail -n 20 "$directory/log"; exit 1; }
for program in "${programs[@]}"; do
    same ".build-release/release/$program" "$other/.build-release/release/$program"
done
