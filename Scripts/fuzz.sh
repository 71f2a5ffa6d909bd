#!/usr/bin/env bash
# Runs the fuzzers of the vault's format and of the agent's protocol for SECONDS_TO_RUN (60) seconds each, under the
# address sanitizer. The seeds come from a real vault and from earlier runs. A failing input is left in
# .build-fuzz/failures.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

vaultctl=$PWD/${1:?usage: fuzz.sh VAULTCTL}
scratch=$PWD/.build-fuzz
swift build --package-path Fuzzing --scratch-path "$scratch" --configuration release \
    --sanitize=address --sanitize=fuzzer -Xswiftc -enable-testing -Xswiftc -use-ld=lld

corpus=$scratch/corpus
mkdir -p "$corpus" "$scratch/failures"

# The first byte of an input chooses the decoder: see FormatDecoder.
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
seed() { { printf "\\x$1"; cat; } >"$corpus/seed-$1-$2"; }
vault=$directory/seed.vault
run() { "$vaultctl" "$@" --vault "$vault" --state-dir "$directory/state" --key-file "$directory/key" >/dev/null; }
run init
echo fake-token | run store access_token
head --bytes=8192 "$vault" | tail --bytes=8184 | seed 0 key-file
head --bytes=20480 "$vault" | tail --bytes=4096 | seed 1 frames
head --bytes=136 "$vault" | seed 2 header
printf '\x40\0\0\0\x04\0\0\0name\x05\0\0\0token%48s' '' | tr ' ' '\0' | seed 5 metadata
{ head --bytes=61 /dev/zero; printf '\1\0\0'; } | seed 8 record
head --bytes=96 /dev/zero | seed a summary
printf '{"key":"k","value":"\\u00e9\\n","attributes":{"a":"b"},"n":[1.5e3,null]}' | seed c line
printf '{"key":"k","valueBase64":"AAEC"}' | seed c base64
printf 'fake words\n' >"$directory/export-passphrase"
run export "$directory/seed.export" --export-passphrase-file "$directory/export-passphrase"
head --bytes=200 "$directory/seed.export" | seed d export
find "$directory/state" -type f -size -4k -exec cat {} + | tail --bytes=+9 | seed 7 anchor

fuzz() {
    "$scratch/release/$1" -max_total_time="${SECONDS_TO_RUN:-60}" -max_len=9000 -use_value_profile=1 \
        -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$scratch/failures/" "$2"
}
fuzz FormatFuzzer "$corpus"

# The first byte chooses the reader: see AgentMessage. The request has a number, kind, path, no identifier, service and
# key.
corpus=$scratch/corpus-agent
mkdir -p "$corpus"
request() { printf '\1\0\0\0'"$1"'\4\0\0\0/a/b\0'"${2:-}"; }
request '\x01' '\1\0\0\0s\1\0\0\0k' | seed 1 secret
request '\x04' '\0\0\0\0\0\0\0' | seed 1 list
request '\x05' '\1\0\0\0s\1\0\0\0\1\0\0\0k\1\3\0\0\0abc\0\0\0\0\0' | seed 1 commit
request '\x09' '\0\0\2\3\0\0\0abc' | seed 1 unlock
{ printf '\x15\0\0\0\0\0\0\0\0TVAGENT\n\1\0\1\0\x0e\0\0\0'; request '\x07'; } | seed 0 stream
printf '\0\0\0\0\0TVAGENT\n\1\0\1\0' | seed 2 hello
printf '\1\0\0\0k\1\0\0\0s\0\0\0\0%24s\0\0\0\0\0' '' | tr ' ' '\0' | seed 4 item
printf '\6\0\0\0locked\0\0\0\0\0\0\0\0\0\0\0' | seed 6 error
printf '\1\1\0\0\0k\1\0\0\0\0\0\0\0' | seed 7 event
fuzz AgentFuzzer "$corpus"
