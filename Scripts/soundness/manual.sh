#!/usr/bin/env bash
# The manual has a page for every command, with every option of the command's help, and names no other option. Every page is
# correct for mandoc, where mandoc is installed. install.sh knows the pages that there are.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# options: the long options in a help text. `--no-…` pairs are written out by the help as well.
options() { grep -oE '(^|[^A-Za-z-])--[a-z][a-z-]*' | grep -oE -- '--[a-z][a-z-]*' | sort -u; }
# usage: the part of a help text below the page of the command, which may name options of other commands.
usage() { sed -n '/^USAGE: /,$p' | sed -n '2,$p' | sed -n 's/^  \(-.*\)/\1/p' | sed -E 's/  +[^-].*//'; }
# described PAGE: the long options that a page describes, or refers to as options of every command.
described() { sed 's/\\-/-/g' "$1" | sed -n -e 's/^\.It \(Fl .*\)/\1/p' -e 's/^\.\(Fl .*\)/\1/p' | grep -oE 'Fl -[a-z-]+' | sed 's/Fl /-/' | sort -u; }
# compare HELP MANUAL
compare() { diff --unified=0 --label help --label manual "$1" "$2" | sed '/^@@/d'; return "${PIPESTATUS[0]}"; }

# commands WORD…: below this command, each command that its help lists, one a line.
commands() {
    local name
    "$program" help "$@" | sed -n '/^SUBCOMMANDS:/,/^[^ ]/s/^  \([a-z][a-z-]*\).*/\1/p' | while IFS= read -r name; do
        [[ $name == help ]] && continue
        printf '%s\n' "$* $name"
        # shellcheck disable=SC2086 # words
        commands $* "$name"
    done
}

# check PAGES: compares the pages in the directory PAGES with the help of $program.
check() {
    local pages=$1 command page
    commands | sed 's/^ //' | sort >"$directory/commands"
    [[ -s $directory/commands ]] || { echo "the help lists no command"; return 1; }
    { echo vaultctl; sed 's/ /-/g; s/^/vaultctl-/' "$directory/commands"; } | sort >"$directory/wanted"
    find "$pages" -name '*.1' -size +0 -printf '%f\n' | sed 's/\.1$//' | sort >"$directory/found"
    compare "$directory/wanted" "$directory/found" || return
    while IFS= read -r command; do
        page=$pages/vaultctl-${command// /-}.1
        # shellcheck disable=SC2086 # words
        "$program" help $command | usage | options >"$directory/help"
        described "$page" >"$directory/options"
        compare "$directory/help" "$directory/options" || { echo "${page##*/} has other options than the help"; return 1; }
        grep --quiet "^\.It Xr vaultctl-${command// /-} 1$" "$pages/vaultctl.1" || { echo "vaultctl.1 lacks $command"; return 1; }
    done <"$directory/commands"
}

# lint PAGE…: prints what mandoc reports, where it is installed. Status 1 for a page that is wrong or empty.
lint() {
    local page has_mandoc=
    if command -v mandoc >/dev/null; then has_mandoc=1; mandoc -T lint -W warning "$@" || return; fi
    for page; do
        [[ $(wc -l <"$page") -gt 20 ]] || { echo "${page##*/} is empty"; return 1; }
        [[ -n $has_mandoc ]] || continue
        mandoc -T ascii "$page" | sed 's/.\x08//g' >"$directory/printed"
        grep --quiet '^EXIT STATUS$' "$directory/printed" || { echo "${page##*/} is printed without exit statuses"; return 1; }
    done
}

if [[ ${1:-} == --self-test ]]; then
    # A program that prints a help with one command, `store`, and a group, `slot`, with one.
    cat >"$directory/vaultctl" <<'END'
#!/usr/bin/env bash
set -euo pipefail
source "${BASH_SOURCE[0]%/*}/texts"
shared='{"kind": "option", "shouldDisplay": true, "sectionTitle": "Where and how", "isOptional": true, "isRepeating": false,
    "names": [{"kind": "long", "name": "vault"}], "valueName": "path", "abstract": "The vault file."}'
flag() { printf '{"kind": "flag", "shouldDisplay": true, "isOptional": true, "isRepeating": false,
    "names": [{"kind": "long", "name": "%s"}], "abstract": "%s"}' "$1" "$2"; }
key='{"kind": "positional", "shouldDisplay": true, "isOptional": false, "isRepeating": false, "valueName": "key", "abstract": "A name."}'
text() { printf '%s' "${1//$'\n'/\\n}" | sed 's/"/\\"/g'; }
if [[ $1 == --experimental-dump-help ]]; then
    printf '{"command": {"commandName": "vaultctl", "arguments": [%s, %s], "subcommands": [' "$(flag help 'Help.')" "$(flag version 'Version.')"
    printf '{"commandName": "store", "abstract": "Store a secret.", "discussion": "%s", "arguments": [%s, %s, %s, %s]},' \
        "$(text "$store")" "$key" "$(flag "$option" "$option_text")" "$shared" "$(flag help 'Help.')"
    printf '{"commandName": "slot", "abstract": "Slots.", "discussion": "%s", "arguments": [%s], "subcommands": [' \
        "$(text "$slot")" "$(flag help 'Help.')"
    printf '{"commandName": "list", "abstract": "Print.", "discussion": "%s", "arguments": [%s]}]},' "$(text "$list")" "$(flag help 'Help.')"
    printf '{"commandName": "help"}]}}'
    exit
fi
case ${*:2} in
    '') printf 'USAGE: vaultctl\n\nOPTIONS:\n  -h, --help              Help.\n\nSUBCOMMANDS:\n  store   Store.\n  slot   Slots.\n' ;;
    store) printf 'USAGE: vaultctl store [--x] <key>\n\nOPTIONS:\n  --vault <path>          As --other does.\n  --binary\n  -h, --help  Help.\n' ;;
    slot) printf 'USAGE: vaultctl slot\n\nOPTIONS:\n  -h, --help  Help.\n\nSUBCOMMANDS:\n  list  Print.\n' ;;
    *) printf 'USAGE: vaultctl slot list\n\nOPTIONS:\n  -h, --help  Help.\n' ;;
esac
END
    chmod +x "$directory/vaultctl"
    program=$directory/vaultctl
    # Every option of the page that is written by hand is one of the program: the other checks use a page of their own.
    mkdir -p "$directory/tree/Scripts" "$directory/tree/Documentation" "$directory/pages"
    cp Scripts/manual.py "$directory/tree/Scripts"
    fine() {
        page=$'A text.\n\nExamples:\n  vaultctl store KEY\n  x | vaultctl store KEY \\\\\n    --vault v >y\n\nExit status:\n   0  Done.\n   3  None,\n      on two lines.'
        list=$'A text.\n\nExamples:\n  vaultctl slot list\n  vaultctl slot list || exit\n\nExit status:\n   0  Done.'
        store=$page slot=${list/Done/Done} option=binary option_text='Keep every byte.'
        top=$'.Dd January 1, 2000\n.Dt VAULTCTL 1\n.Os\n.Sh NAME\n.Nm vaultctl\n.Nd keep secrets\n.Sh COMMANDS\n.\\" COMMANDS
.Sh OPTIONS\n.Bl -tag -width Ds\n.It Fl -vault Ar path\nThe file.\n.It Fl -help\nHelp.\n.It Fl -version\nVersion.\n.El
.Sh EXIT STATUS\n0.\n.Sh EXAMPLES\n.Bd -literal\n$ vaultctl store KEY --vault v\n.Ed'
    }
    # make: makes the pages of the program that the variables describe.
    make() {
        declare -p store slot list option option_text >"$directory/texts"
        printf '%s\n' "$top" >"$directory/tree/Documentation/vaultctl.1"
        rm -f "$directory"/pages/*
        SOURCE_DATE_EPOCH=86400 /usr/bin/python3 -B "$directory/tree/Scripts/manual.py" "$directory/pages" "$program"
    }
    passes() { make && check "$directory/pages" && lint "$directory"/pages/*.1 || { echo "fails: $*"; exit 1; }; fine; }
    fails() { if make >/dev/null 2>&1; then echo "passes: $*"; exit 1; fi; fine; }
    fine
    passes "a page with all of its parts"
    grep --quiet '^\.Dd January 2, 1970$' "$directory/pages/vaultctl-store.1" || { echo "SOURCE_DATE_EPOCH is not used"; exit 1; }
    grep --quiet '^None, on two lines\.$' "$directory/pages/vaultctl-store.1" || { echo "a line of an exit status is lost"; exit 1; }
    store=${store//KEY/"'.k'"} option_text=".dot and \\\\ 'quote' --binary"
    passes "a text with marks that mean something to mdoc"
    store=${store/*Examples/Examples}; fails "no description"
    store=${store/  vaultctl store KEY$'\n'/}; fails "one example"
    store=${store/Exit status*/}; fails "no exit status"
    store=${store/   3/   2}; fails "an unknown exit status"
    store=${store/--vault/--vaults}; fails "an unknown option in an example"
    store=${store/store KEY/store}; fails "a missing argument in an example"
    store=${store/store KEY/sotre KEY}; fails "an unknown command in an example"
    store=${store/A text/As --other does}; fails "an unknown option in a text"
    store=${store/A text/As \"vaultctl sotre\" does}; fails "an unknown command in a text"
    option_text=; fails "an option without a text"
    list=${list/*Examples/Examples}; fails "a subcommand without a description"
    top=${top/'.\" COMMANDS'/}; fails "no place for the commands"
    top=${top/.It Fl -vault Ar path/.It Fl -help}; fails "a shared option that is not described"
    top=${top/KEY --vault/KEY --vaults}; fails "an unknown option in an example of vaultctl.1"
    top+=$'\n.Fl -vaults'; fails "an unknown option in vaultctl.1"
    printf '#!/bin/sh\nexit 1\n' >"$directory/other"
    chmod +x "$directory/other"
    if program=$directory/other make >/dev/null 2>&1; then echo "a program without help passes"; exit 1; fi
    # What only the comparison with the help finds.
    option=text make
    if check "$directory/pages" >/dev/null; then echo "an option that the help does not have passes"; exit 1; fi
    make
    sed -i 's/binary/vault/' "$directory/pages/vaultctl-store.1"
    if check "$directory/pages" >/dev/null; then echo "an option that the page lacks passes"; exit 1; fi
    make
    rm "$directory/pages/vaultctl-slot-list.1"
    if check "$directory/pages" >/dev/null; then echo "a missing page passes"; exit 1; fi
    make
    sed -i '/^\.It Xr vaultctl-slot 1/d' "$directory/pages/vaultctl.1"
    if check "$directory/pages" >/dev/null; then echo "a command that vaultctl.1 lacks passes"; exit 1; fi
    make
    head -n 5 "$directory/pages/vaultctl-store.1" >"$directory/short.1"
    if lint "$directory/short.1" >/dev/null; then echo "an empty page passes"; exit 1; fi
    exit
fi

program=.build-release/release/vaultctl
mkdir "$directory/pages"
/usr/bin/python3 -B Scripts/manual.py "$directory/pages" "$program"
check "$directory/pages"
lint "$directory"/pages/*.1
# A page of a command that is gone stays in the list of install.sh.
Scripts/install.sh --pages | sort >"$directory/known"
find "$directory/pages" -name '*.1' -printf '%f\n' | sed 's/\.1$//' | sort >"$directory/found"
[[ -z $(comm -13 "$directory/known" "$directory/found") ]] \
    || { echo "the list of pages in install.sh lacks:"; comm -13 "$directory/known" "$directory/found"; exit 1; }
