#!/usr/bin/env bash
# Checks the installed programs. They are position-independent, bind every symbol before they run, leave no symbol table
# writable, and have no library path of their own. Our C code checks the stack, the lengths of buffers and the targets
# of jumps.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

check_program() {
    local program=$1 found=0 dynamic
    dynamic=$(readelf --dynamic --wide "$program")
    grep -q 'FLAGS_1.*\bNOW\b' <<<"$dynamic" || { echo "$program binds symbols while it runs"; found=1; }
    grep -q 'FLAGS_1.*\bPIE\b' <<<"$dynamic" || { echo "$program is not position-independent"; found=1; }
    if grep -E '\((RPATH|RUNPATH)\)' <<<"$dynamic"; then echo "$program names a directory of libraries"; found=1; fi
    readelf --program-headers --wide "$program" | grep -q GNU_RELRO \
        || { echo "$program leaves its tables writable"; found=1; }
    return $found
}

# Checks the objects of one C module: the jumps of each object, and the other checks of all together.
check_objects() {
    local found=0 object symbols=
    for object; do
        if [[ $(uname -m) == x86_64 ]] && ! readelf --notes "$object" | grep -q 'IBT, SHSTK'; then
            echo "$object does not check the targets of jumps"
            found=1
        fi
        symbols+=$(nm "$object")$'\n'
    done
    grep -q '__stack_chk_fail' <<<"$symbols" || { echo "$* do not check the stack"; found=1; }
    grep -qE '__[a-z_]+_chk$' <<<"$symbols" || { echo "$* do not check the lengths of buffers"; found=1; }
    return $found
}

# Checks the compiler flags of our C objects in the build's description: weaker checks would leave the same symbols.
check_commands() {
    local found=0 commands command flag
    commands=$(grep -E '"-c","[^"]*/Sources/(CLinux|CSecret)/[^"]*\.c"' "$1") || { echo "$1 compiles no C of ours"; return 1; }
    while read -r command; do
        for flag in -fstack-protector-strong -D_FORTIFY_SOURCE=2; do
            grep -qF "\"$flag\"" <<<"$command" || { echo "a file is compiled without $flag: $command"; found=1; }
        done
    done <<<"$commands"
    return $found
}

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    cat >"$directory/a.c" <<'C'
#include <string.h>
int copy(const char *text, int length) { char bytes[64]; memcpy(bytes, text, length); return bytes[3]; }
int main(int count, char **words) { return copy(words[0], count); }
C
    fine=(-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2)
    [[ $(uname -m) != x86_64 ]] || fine+=(-fcf-protection)
    compile() { clang "$@" -c -o "$directory/a.o" "$directory/a.c"; }
    link() { clang -fuse-ld=lld -pie "$@" -o "$directory/a" "$directory/a.o"; }
    compile "${fine[@]}"
    check_objects "$directory/a.o" || { echo "a checking object is refused"; exit 1; }
    link -Wl,-z,now
    check_program "$directory/a" || { echo "a hardened program is refused"; exit 1; }
    for flag in -Wl,-z,lazy -Wl,-z,norelro '-Wl,-rpath,$ORIGIN' -no-pie; do
        link -Wl,-z,now "$flag"
        if check_program "$directory/a" >/dev/null; then echo "a program linked with $flag passes"; exit 1; fi
    done
    for flag in -fno-stack-protector -U_FORTIFY_SOURCE -fcf-protection=none; do
        [[ $flag != -fcf* || $(uname -m) == x86_64 ]] || continue
        compile "${fine[@]}" "$flag"
        if check_objects "$directory/a.o" >/dev/null; then echo "an object compiled with $flag passes"; exit 1; fi
    done
    planted='args: ["clang","-fstack-protector-strong","-D_FORTIFY_SOURCE=2","-c","/p/Sources/CLinux/a.c"]'
    echo "$planted" >"$directory/all"
    check_commands "$directory/all" || { echo "a checking command is refused"; exit 1; }
    for weaker in "${planted/-strong/}" "${planted/SOURCE=2/SOURCE=1}" 'args: []'; do
        echo "$weaker" >"$directory/weaker"
        if check_commands "$directory/weaker" >/dev/null; then echo "a weaker command passes"; exit 1; fi
    done
    exit
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
DESTDIR=$scratch Scripts/install.sh .build-release/release/vaultctl /usr >/dev/null
failed=0
for program in bin/vaultctl bin/vaultctl-agent libexec/tokenvault/vaultctl-oauth libexec/tokenvault/vaultctl-benchmark; do
    check_program "$scratch/usr/$program" || failed=1
done
check_commands .build-release/release.yaml || failed=1
for module in CLinux CSecret; do
    check_objects .build-release/release/$module.build/*.o || failed=1
done
exit $failed
