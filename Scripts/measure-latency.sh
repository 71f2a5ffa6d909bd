#!/usr/bin/env bash
# measure-latency.sh VAULTCTL: measures the vault and a gnome-keyring of its own by the number of items, in one run, on
# the disk of this directory. Writes the figures to Documentation/latency, and draws the README's picture from them.
# Storing into the keyring becomes slow with its size. The picture shows this, and the keyring has fewer items for this
# reason.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

program=$(realpath "${1:?usage: measure-latency.sh VAULTCTL}")
target=Documentation/latency
commit=$(git describe --always --dirty)
directory=$(mktemp --directory "$PWD/.latency-XXXXXX")
end() {
    local input=${desktop[1]:-}
    [[ -z $input ]] || eval "exec $input>&-"
    wait
    rm -rf "$directory"
}
trap end EXIT

# A desktop with a keyring, which runs while its standard input is open.
coproc desktop { exec /usr/bin/python3 -B Tests/Support/Desktop/desktop.py "$directory/desktop"; }
desk() {
    local answer
    IFS= read -r answer <&"${desktop[0]}" && [[ $answer == ok* ]] || { echo "no desktop: ${answer:-}" >&2; exit 1; }
}
desk
printf 'start_keyring\n' >&"${desktop[1]}"
desk

mapfile -t sizes < <(printf -- '--items\n%s\n' 100 300 1000 2000 3000 10000 30000 100000)
DBUS_SESSION_BUS_ADDRESS=unix:path=$directory/desktop/bus "$program" benchmark --directory "$directory" \
    --backend file --backend agent --backend secret-service "${sizes[@]}" --keyring-items 2000 --seconds 80 --json \
    >"$directory/latency.json"
# Puts each measurement on a line of its own.
sed -e 's/^\[/[\n/' -e 's/},{/},\n{/g' -e 's/\]$/\n]/' "$directory/latency.json" >"$directory/lines.json"
Scripts/draw-latency.py "$directory/lines.json" >"$directory/latency.svg"
cp "$directory/lines.json" "$target/latency.json"
cp "$directory/latency.svg" "$target/latency.svg"
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
    printf '# The figures behind the README'\''s picture\n\n'
    printf '`make latency` measures them anew, with `Scripts/measure-latency.sh`, and draws `latency.svg` with\n'
    printf '`Scripts/draw-latency.py`. These are of commit %s, on %s x %s, Linux %s, %s, %s.\n' "$commit" "$(nproc)" "${processor:-$(uname -m)}" \
        "$(uname -r)" "$(df --output=fstype . | tail -n 1)" "$(gnome-keyring-daemon --version | sed -n 's/^gnome-keyring-daemon: /gnome-keyring /p' | head -n 1)"
} >"$target/README.md"
