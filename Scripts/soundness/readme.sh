#!/usr/bin/env bash
# Runs the ```console blocks of the README and of the articles below, in order, with the release build. Each page has a
# temporary home and a shell of its own: a page does not see the files or variables of another page.
# A line that begins with `$ ` is a command. It must succeed unless the next command is `echo $?`. The lines below it
# are its expected output, and without any it must print nothing; `…` stands for any text. `make TARGET` runs only for
# install: the other targets run in CI anyway, and must exist. The provider, client and interface of the page stand for
# those of the OAuth server of the tests, whose browser signs in.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
root=$PWD

directory=$(mktemp -d)
# The names in the page, and the real ones here.
page_names=() real_names=()
# A page may unlock the vault, which starts an agent.
end_agent() { "$root/.build-release/release/vaultctl" agent --stop >/dev/null 2>&1; }
trap 'end_agent; rm -rf "$directory"' EXIT
export HOME=$directory/home
export XDG_DATA_HOME=$HOME/.local/share XDG_STATE_HOME=$HOME/.local/state XDG_RUNTIME_DIR=$HOME/run
export PATH=$HOME/.local/bin:$root/.build-release/release:$PATH
unset "${!VAULTCTL_@}"
umask 077

make() {
    local target=${1:?}
    if [[ $target == install ]]; then command make --no-print-directory -C "$root" "$@"
    else command make -C "$root" --dry-run "$@" >/dev/null; fi
}
with_status() { return "$1"; }

# run PAGE: runs the commands of the page. Prints the place of the first command with another result, and returns status
# 1.
run() {
    local page=$1 line command='' expected='' status=0 answered=0 number=0 inside=0
    end_agent
    rm -rf "$HOME"
    mkdir -p "$XDG_RUNTIME_DIR"
    cd "$HOME" || return 1

    finish() { # NEXT-COMMAND
        [[ -n $command ]] || return 0
        local replaced
        for replaced in "${!page_names[@]}"; do
            command=${command//"${page_names[replaced]}"/"${real_names[replaced]}"}
            expected=${expected//"${page_names[replaced]}"/"${real_names[replaced]}"}
        done
        with_status "$status"
        eval "$command" >"$directory/answer" 2>&1 </dev/null
        status=$?
        if [[ $status != 0 && $1 != 'echo $?' ]]; then
            printf '%s:%s: exit status %s: %s\n' "$page" "$number" "$status" "$command"
            cat "$directory/answer"
            return 1
        fi
        local pattern answer
        answer=$(<"$directory/answer")
        pattern=$(sed -e 's/[][*?\\]/\\&/g' -e 's/…/*/g' <<<"${expected%$'\n'}")
        # shellcheck disable=SC2053 # a pattern
        if [[ $answer != $pattern ]]; then
            printf '%s:%s: %s\nthe page says\n%sand it says\n%s\n' "$page" "$number" "$command" "$expected" "$answer"
            return 1
        fi
        command='' expected=''
    }
    local at=0
    while IFS= read -r line; do
        at=$((at + 1))
        if [[ $line == '```console' ]]; then inside=1
        elif [[ $line == '```' && $inside == 1 ]]; then finish '' || return 1; inside=0
        elif [[ $inside == 0 ]]; then continue
        elif [[ $line == '$ '* ]]; then finish "${line#\$ }" || return 1; command=${line#\$ } number=$at
        else expected+=$line$'\n'; fi
    done <"$page"
    cd "$root" || return 1
}

# run_each PAGE...: runs every page in a subshell. Status 1 when a page fails; later pages still run.
run_each() {
    local page failed=0
    for page; do (run "$page") || failed=1; done
    return $failed
}

# shows_command PAGE: whether the page has a ```console block.
shows_command() { grep --quiet '^```console$' "$1"; }

page() { printf '%s\n' '```console' "$@" '```' >"$directory/page.md"; }

if [[ ${1:-} == --self-test ]]; then
    page '$ name=value' '$ echo "$name [1] and more"' 'value [1] and …' '$ (exit 3)' '$ echo $?' '3' '$ make test'
    run "$directory/page.md" || { echo "a true page is refused"; exit 1; }
    page_names=(https://id.example.com) real_names=(elsewhere)
    page '$ echo https://id.example.com/o' 'https://id.example.com/o'
    run "$directory/page.md" || { echo "a provider's name is not looked up"; exit 1; }
    page '$ echo elsewhere/o' 'https://id.example.com/p'
    if (run "$directory/page.md") >/dev/null; then echo "a wrong provider's name passes"; exit 1; fi
    page_names=() real_names=()
    page '$ echo one'
    if (run "$directory/page.md") >/dev/null; then echo "an answer that the page does not show passes"; exit 1; fi
    page '$ echo one' 'two'
    if (run "$directory/page.md") >/dev/null; then echo "a wrong answer passes"; exit 1; fi
    page '$ (exit 3)'
    if (run "$directory/page.md") >/dev/null; then echo "a command that fails passes"; exit 1; fi
    page '$ (exit 3)' '$ echo $?' '4'
    if (run "$directory/page.md") >/dev/null; then echo "a wrong exit status passes"; exit 1; fi
    page '$ make no-such-target'
    if (run "$directory/page.md") >/dev/null 2>&1; then echo "an unknown target passes"; exit 1; fi
    page '$ export LEFT=over' '$ umask 022' '$ echo "$LEFT" >left'
    mv "$directory/page.md" "$directory/first.md"
    page '$ echo "${LEFT:-no variable}, $(umask)"' 'no variable, 0077' '$ [[ ! -e left ]]'
    run_each "$directory/first.md" "$directory/page.md" || { echo "a page sees what another page left"; exit 1; }
    page '$ (exit 3)'
    if run_each "$directory/page.md" "$directory/first.md" >/dev/null; then echo "a page that fails is forgotten"; exit 1; fi
    if run_each "$directory/first.md" "$directory/page.md" >/dev/null; then echo "the last page is not run"; exit 1; fi
    printf '%s\n' '```swift' '$ true' '```' >"$directory/page.md"
    if shows_command "$directory/page.md"; then echo "a page without a command passes"; exit 1; fi
    exit
fi

pages=("$root/README.md" "$root"/Sources/TokenVault/Documentation.docc/{UsingVaultctl,Servers,Desktops,BackupAndRecovery}.md)

[[ -x .build-release/release/vaultctl ]] || { echo "run make release first"; exit 1; }
for page in "${pages[@]}"; do
    shows_command "$page" || { echo "$page shows no command"; exit 1; }
done
# A desktop with a keyring, which runs while its standard input is open.
coproc desktop { exec /usr/bin/python3 -B "$root/Tests/Support/Desktop/desktop.py" "$directory/desktop"; }
desk() { IFS= read -r answer <&"${desktop[0]}" && [[ $answer == ok* ]] || { echo "no desktop: ${answer:-}"; exit 1; }; }
desk
printf 'start_keyring\n' >&"${desktop[1]}"
desk
export DBUS_SESSION_BUS_ADDRESS=unix:path=$directory/desktop/bus
# A provider, which runs while its standard input is open, and the browser of a user with an account there.
python=$root/.build-oauth-server/bin/python
mkdir "$directory/provider"
mkfifo "$directory/provider/commands" "$directory/provider/facts"
"$python" -B "$root/Tests/Support/OAuth/server.py" "$directory/provider" \
    <"$directory/provider/commands" >"$directory/provider/facts" 2>"$directory/provider/log" &
exec {commands}>"$directory/provider/commands"
IFS= read -r facts <"$directory/provider/facts" || { echo "no provider: $(tail -n 1 "$directory/provider/log")"; exit 1; }
fact() { "$python" -c 'import json, sys; print(eval(sys.argv[2], {"facts": json.loads(sys.argv[1])}))' "$facts" "$1"; }
page_names=(https://id.example.com my-tool https://api.example.com/)
real_names=("$(fact 'facts["issuer"]')" "$(fact 'facts["clients"]["browser"]["id"]')" "$(fact 'facts["origin"]')/api/echo")
printf '#!/bin/bash\nexec "%s" -B "%s" %s "$1" >/dev/null 2>&1\n' "$python" "$root/Tests/Support/OAuth/browser.py" \
    "$(fact '"%(name)s %(password)s" % facts["users"][0]')" >"$directory/browser"
chmod +x "$directory/browser"
export BROWSER=$directory/browser
run_each "${pages[@]}"
