#!/usr/bin/env bash
# Checks that the manual has exactly the commands and options of the program's help.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

# options: prints the options in a text. The help writes `--no-…` pairs out as well.
options() { grep -oE '(^|[^A-Za-z-])--[a-z][a-z-]*' | grep -oE -- '--[a-z][a-z-]*' | sort -u; }
# compare HELP-WORDS MANUAL-WORDS: prints the differences.
compare() { diff --unified=0 --label help --label manual "$1" "$2" | sed '/^@@/d'; return "${PIPESTATUS[0]}"; }

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

if [[ ${1:-} == --self-test ]]; then
    printf 'OPTIONS:\n  --one <one>  As --two. pre--fix -v, --version\n' | options >"$directory/help"
    printf -- '--one\n--two\n--version\n' >"$directory/manual"
    compare "$directory/help" "$directory/manual" || { echo "an equal manual is refused"; exit 1; }
    printf -- '--one\n--version\n' >"$directory/manual"
    if compare "$directory/help" "$directory/manual" >/dev/null; then echo "a missing option passes"; exit 1; fi
    printf -- '--one\n--three\n--two\n--version\n' >"$directory/manual"
    if compare "$directory/help" "$directory/manual" >/dev/null; then echo "an unknown option passes"; exit 1; fi
    exit
fi

program=.build-release/release/vaultctl
manual=Documentation/vaultctl.1
# commands WORD…: prints each command that the help of this command lists, one a line.
commands() {
    local name
    "$program" help "$@" | sed -n '/^SUBCOMMANDS:/,/^[^ ]/s/^  \([a-z][a-z-]*\).*/\1/p' | while IFS= read -r name; do
        [[ $name == help ]] && continue
        printf '%s\n' "$* $name"
        # shellcheck disable=SC2086 # words
        commands $* "$name"
    done
}
commands | sed 's/^ //' | sort >"$directory/commands"
[[ -s $directory/commands ]] || { echo "the help lists no command"; exit 1; }
{
    "$program" help
    # shellcheck disable=SC2086 # words
    while IFS= read -r command; do "$program" help $command; done <"$directory/commands"
} | options >"$directory/help"
sed -n 's/^\.\(It\|Op\|Nm\) .*/&/p' "$manual" | sed 's/\\-/-/g' | grep -oE 'Fl -[a-z-]+' | sed 's/Fl /-/' | sort -u >"$directory/options"
compare "$directory/help" "$directory/options"
sed -n 's/^\.Ss vaultctl \(.*\)/\1/p' "$manual" | sort >"$directory/sections"
compare "$directory/commands" "$directory/sections"
