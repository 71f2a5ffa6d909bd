#!/usr/bin/env bash
# Checks that the pages below, the doc comments of sources and tests, and the texts in the sources are easy to read. A sentence has
# at most 25 words, and a bullet of the changelog at most 19. The words that prose.py lists do not occur. Code is not checked, and no
# text of fewer than four words. Add a page to the list when its language is good.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
root=$PWD

pages=(
    CHANGELOG.md CONTRIBUTING.md README.md SECURITY.md
    Sources/TokenVault/Documentation.docc/{Adapters,Agent,BackupAndRecovery,Choosing,CrossPlatform,Desktops,FileVaultConcepts,Format,Migrating,Trouble}.md
    Sources/TokenVault/Documentation.docc/{GettingStarted,Policies,SecretServiceConcepts,Servers,ThreatModel,TokenVault,UsingVaultctl}.md
    Sources/{TokenVaultAuth,TokenVaultOAuth,TokenVaultTesting,VaultAgent}/Documentation.docc/*.md
)

# check FILE...: prints what is hard to read. Status 1 when there is something.
check() { /usr/bin/python3 -B "$root/Scripts/soundness/prose.py" "$@"; }

if [[ ${1:-} == --self-test ]]; then
    directory=$(mktemp -d)
    trap 'rm -rf "$directory"' EXIT
    page=$directory/page.md
    long=$(printf 'word %.0s' {1..26})
    passes() { printf '%s\n' "$@" >"$page"; check "$page" >/dev/null || { echo "fails: $*"; exit 1; }; }
    fails() { printf '%s\n' "$@" >"$page"; if check "$page" >/dev/null; then echo "passes: $*"; exit 1; fi; }
    passes 'A short sentence. Another one.' '```' "$long" '```' "# $long"
    passes "${long% word * word }" "- ${long:0:100}" '' "- ${long:0:100}"
    passes 'A `span of code with many words that count as one word only, however long the span of code is in here` is short.'
    fails "$long"
    fails "- short" "  $long"
    fails "| short | $long |"
    fails "${long:0:65}" "${long:0:65}"
    fails 'The user is told.'
    fails 'This says' 'who signed in.'
    fails '- It lets go of the vault.'
    page=$directory/File.swift
    passes "// $long" '/// A comment.' '    /// Another one,' '    /// of two lines.' '/// ```' "/// $long" '/// ```'
    fails "/// $long"
    fails '    /// Whether the caller' '    /// is told.'
    # Texts in code.
    passes "let name = \"nobody is told\" // \"$long\"" "/* /* \"$long\" */ \"$long\" */" 'let quote = "\\"' "// $long"
    passes "let text = \"${long:0:100}\\(names.map { \"\\(\$0) or \\(\$0) or (\\(\$0))\" } + \"a\") ${long:0:15}\""
    passes 'let all = text.matches(of: /nobody "is told here/) + text.matches(of: #/nobody / "is told here/#)' 'let half = a / 2 + b / 2'
    passes "print(\"${long:0:100}\", \"${long:0:100}\")" "let lines = \"${long:0:100}. W${long:1:99}\""
    passes 'let help = """' "    ${long:0:100}" '' "    ${long:0:100}:" "      $long" '    """'
    passes 'let style = """' "    word { $long;" '    }' '    word { nobody: word; nobody: word; }' '    """' "let raw = #\"a \\(b) c\"#"
    fails "let text = \"$long\""
    fails "let text =" "    \"${long:0:65}\"" "    + \"${long:0:65}\""
    fails "let text = \"${long:0:65}\" + \"\\(name + \"\")${long:0:65}\""
    fails 'let text = "nobody is signed in"'
    fails 'let quote = "\"\\"' "print(/* \" */ \"$long\")"
    fails 'let text = #"the "user" is told"#'
    fails 'let text = "a \(isTold ? "the user is told so" : "") b"'
    fails 'let text = #"a \#(isTold ? "the user is told so" : "") b"#'
    fails 'let help = """' "    ${long:0:65}\\" "    ${long:0:65}" '    """'
    fails 'let help = """' '    A list:' '    - The user' '      is told.' '    """'
    fails 'let help = """' "    <p>${long:0:65}" "    ${long:0:65}</p>" '    """'
    fails 'let half = a / 2' 'let text = "nobody / is told so"' 'let other = b / 2'
    mkdir "$directory/Tests"
    printf '%s\n' "let text = \"$long\"" >"$directory/Tests/File.swift"
    (cd "$directory" && check Tests/File.swift) || { echo "a text of a test is checked"; exit 1; }
    page=$directory/CHANGELOG.md
    fails "- ${long:0:100}"
    exit
fi

mapfile -t sources < <(git ls-files 'Sources/*.swift' 'Tests/*.swift')
[[ ${#sources[@]} != 0 ]] || { echo "git lists no sources here"; exit 1; }
check "${pages[@]}" "${sources[@]}"
