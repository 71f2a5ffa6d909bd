"""Prints what is hard to read in the given pages and Swift files: in their paragraphs, doc comments and texts of the programs.
Status 1 when there is something."""
import re
import sys

FORBIDDEN = re.compile(
    r"\b(who|whom|whoever|nobody|somebody|anybody|anew|of before|is told|are told|lets? go of|that is none|takes? no more"
    r"|holds? against|of no use|be at it)\b|\bWhat\b[^.]* is what\b",
    re.IGNORECASE,
)
# What a reader of Swift code has to know: the rest of the code has no literals. A regex follows a sign, an operator a word.
TOKEN = re.compile(
    r'(?P<comment>//)|(?P<block>/\*)|(?P<regex>#+/(?s:.*?)/#+|(?<=[(,=:\[{])\s*/(?![\s/*),])(?:\\.|[^\\\n])+/(?=[\s,.)\]]))'
    r'|(?P<literal>(?P<raw>#*)(?P<quotes>"""|"))|(?P<opening>\()|(?P<closing>\))'
)
ESCAPES = {"n": "\n", "r": "\n", "t": " ", "0": " "}


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


class Literals:
    """The string literals of Swift code, also those inside of interpolations: pairs of an offset and a text."""

    def __init__(self, code):
        self.code, self.found = code, []
        self.read_code(0)

    def read_code(self, index):
        """Reads code up to a parenthesis that nothing opened, or to the end, and returns the index behind it."""
        depth, behind, last = 0, None, None
        while token := TOKEN.search(self.code, index):
            index = token.end()
            if token["literal"]:
                text, index = self.read_literal(token)
                # "One text, " + "in two parts" is one text.
                if last is not None and re.fullmatch(r"\s*\+\s*", self.code[behind:token.start()]):
                    offset, first = self.found[last]
                    self.found[last] = (offset, first + text)
                else:
                    last = len(self.found)
                    self.found.append((token.start(), text))
                behind = index
            elif token["comment"]:
                index = self.behind("\n", index)
            elif token["block"]:
                index = self.behind_block(index)
            elif token["opening"]:
                depth += 1
            elif token["closing"]:
                depth -= 1
                if depth < 0:
                    return index
        return len(self.code)

    def behind(self, text, index):
        found = self.code.find(text, index)
        return len(self.code) if found < 0 else found + len(text)

    def behind_block(self, index):
        depth = 1
        for mark in re.compile(r"/\*|\*/").finditer(self.code, index):
            depth += 1 if mark[0] == "/*" else -1
            if depth == 0:
                return mark.end()
        return len(self.code)

    def read_literal(self, opening):
        """Returns the text of a literal, with an interpolation as one word, and the index behind it."""
        index, text = opening.end(), []
        closing, escape = opening["quotes"] + opening["raw"], "\\" + opening["raw"]
        mark = re.compile(f"{re.escape(closing)}|{re.escape(escape)}")
        while found := mark.search(self.code, index):
            text.append(self.code[index:found.start()])
            index = found.end()
            if found[0] == closing:
                text = "".join(text)
                return self.without_code(text) if len(opening["quotes"]) == 3 else text, index
            kind, index = self.code[index], index + 1
            if kind == "(":
                text.append("Code")
                index = self.read_code(index)
            elif kind in " \t\n":  # The line goes on in the next one.
                index = self.behind("\n", index - 1)
                index += re.compile(" *").match(self.code, index).end() - index
            elif kind == "u":
                index = self.behind("}", index)
            else:
                text.append(ESCAPES.get(kind, kind))
        return "", len(self.code)

    @staticmethod
    def without_code(text):
        """The text of a literal of several lines without its own indentation, examples (which have more), and style sheets."""
        lines, is_bullet = text.split("\n"), False
        margin = len(lines[-1])
        for index, line in enumerate(lines):
            line = line[margin:]
            is_bullet = bool(re.match(r"[-*] ", line)) or is_bullet and line.startswith(" ")
            is_code = line.startswith(" ") and not is_bullet or re.search(r"[{};]$", line)
            lines[index] = "" if is_code else line
        return "\n".join(lines)


def literals(code):
    """The texts of at least four words, with their line numbers."""
    for offset, text in sorted(Literals(code).found):
        if len(words(text)) >= 4:
            for number, paragraph in paragraphs(text):
                yield code.count("\n", 0, offset) + number, paragraph


def prose(paragraph):
    """The words without code; a span of code and an address are one word each."""
    paragraph = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    paragraph = re.sub(r"``?[^`]+``?|<doc:[^>]+>", "Code", paragraph)
    return re.sub(r"[*_]{1,2}", "", paragraph)


def sentences(paragraph):
    return re.split(r"(?<=[.!?:])[\"”)]? +(?=[A-Z…\"(])|</?[a-z!][^<>]*>", paragraph)


def words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]


def parts(name, text):
    """What a page or a Swift file has to read, with line numbers."""
    if not name.endswith(".swift"):
        yield from paragraphs(text)
        return
    comments = (re.match(r"\s*/// ?(.*)", line) for line in text.split("\n"))
    yield from paragraphs("\n".join(comment[1] if comment else "" for comment in comments))
    if not name.startswith("Tests/"):
        yield from literals(text)


def main(names):
    bad = False
    for name in names:
        with open(name, encoding="utf-8") as page:
            text = page.read()
        limit = 19 if name.endswith("CHANGELOG.md") else 25
        for number, paragraph in parts(name, text):
            for sentence in sentences(prose(paragraph)):
                count = len(words(sentence))
                if count > limit:
                    print(f"{name}:{number}: {count} words: {sentence}")
                    bad = True
                for found in FORBIDDEN.finditer(sentence):
                    print(f"{name}:{number}: \"{found[0]}\": {sentence}")
                    bad = True
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
