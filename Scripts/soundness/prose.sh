#!/usr/bin/env bash
# Checks that the pages below and the doc comments of sources and tests are easy to read. A sentence has at most 25 words, and a
# bullet of the changelog at most 19. The words below do not occur. Code is not checked. Add a page to the list when its language is
# good.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1

pages=(
    CHANGELOG.md CONTRIBUTING.md README.md SECURITY.md
    Sources/TokenVault/Documentation.docc/{Adapters,Agent,BackupAndRecovery,Choosing,CrossPlatform,Desktops,FileVaultConcepts,Format,Migrating,Trouble}.md
    Sources/TokenVault/Documentation.docc/{GettingStarted,Policies,SecretServiceConcepts,Servers,ThreatModel,TokenVault,UsingVaultctl}.md
    Sources/{TokenVaultAuth,TokenVaultOAuth,TokenVaultTesting,VaultAgent}/Documentation.docc/*.md
)

# check PAGE...: prints what is hard to read. Status 1 when there is something.
check() {
    /usr/bin/python3 -B - "$@" <<'PYTHON'
import re
import sys

FORBIDDEN = re.compile(
    r"\b(who|whom|whoever|nobody|somebody|anybody|anew|of before|is told|are told|lets? go of|that is none|takes? no more"
    r"|holds? against|of no use|be at it)\b|\bWhat\b[^.]* is what\b",
    re.IGNORECASE,
)


def paragraphs(text):
    """The paragraphs, bullets and cells of tables, with their line numbers; no code and no headings."""
    lines, start, is_code = [], 0, False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.lstrip().startswith("```"):
            is_code, line = not is_code, ""
        if is_code or line.startswith("#"):
            line = ""
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield number, cell
            line = ""
        bullet = re.match(r"\s*([-*]|\d+\.) ", line)
        if (not line.strip() or bullet) and lines:
            yield start, " ".join(lines)
            lines = []
        if line.strip():
            if not lines:
                start = number
            lines.append(line[bullet.end():] if bullet else line)


def prose(paragraph):
    """The words without code; a span of code and an address are one word each."""
    paragraph = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    paragraph = re.sub(r"``?[^`]+``?|<doc:[^>]+>", "Code", paragraph)
    return re.sub(r"[*_]{1,2}", "", paragraph)


def sentences(paragraph):
    return re.split(r"(?<=[.!?:])[\"”)]? +(?=[A-Z…\"(])", paragraph)


bad = False
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as page:
        text = page.read()
    if name.endswith(".swift"):
        comments = (re.match(r"\s*/// ?(.*)", line) for line in text.split("\n"))
        text = "\n".join(comment[1] if comment else "" for comment in comments)
    is_changelog = name.endswith("CHANGELOG.md")
    for number, paragraph in paragraphs(text):
        for sentence in sentences(prose(paragraph)):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            limit = 19 if is_changelog else 25
            if len(words) > limit:
                print(f"{name}:{number}: {len(words)} words: {sentence}")
                bad = True
            for found in FORBIDDEN.finditer(sentence):
                print(f"{name}:{number}: \"{found[0]}\": {sentence}")
                bad = True
sys.exit(bad)
PYTHON
}

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
    passes "let text = \"$long\"" "// $long" '/// A comment.' '    /// Another one,' '    /// of two lines.' '/// ```' "/// $long" '/// ```'
    fails "/// $long"
    fails '    /// Whether the caller' '    /// is told.'
    page=$directory/CHANGELOG.md
    fails "- ${long:0:100}"
    exit
fi

mapfile -t sources < <(git ls-files 'Sources/*.swift' 'Tests/*.swift')
check "${pages[@]}" "${sources[@]}"
