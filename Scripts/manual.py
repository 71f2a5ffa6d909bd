#!/usr/bin/env python3
"""manual.py OUTDIR VAULTCTL: writes the manual pages into OUTDIR.

vaultctl.1 is Documentation/vaultctl.1 with the list of commands and the date. vaultctl-COMMAND.1 has the text of `vaultctl help
COMMAND`, which the program prints as JSON. A subcommand has a page of its own (vaultctl-slot-add.1), as `vaultctl help slot add`
has: its options, exit statuses and examples are not those of its siblings.

The date is that of SOURCE_DATE_EPOCH, else of the newest commit, else of the newest source. So the same sources give the same
pages. When a page lacks a part, or names an option or a command that does not exist, one line says so and the exit status is 1.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOP = ROOT / "Documentation" / "vaultctl.1"
# Where the list of commands goes in the page that is written by hand.
MARKER = '.\\" COMMANDS'
# The options of these sections, and of these names, are described on the page of vaultctl.
SHARED_SECTIONS = ("Unlocking", "Where and how")
SHARED_NAMES = ("help", "version")
STATUSES = (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 64)


class Mistake(Exception):
    """Why there are no pages."""


# What the program prints


class Option:
    """An option or a flag, with all of its names."""

    def __init__(self, info):
        self.names = [("-" if name["kind"] == "short" else "--") + name["name"] for name in info["names"]]
        self.value = info.get("valueName", "") if info["kind"] == "option" else ""
        self.text = info.get("abstract", "")
        self.section = info.get("sectionTitle", "")

    @property
    def is_shared(self):
        return self.section in SHARED_SECTIONS or any(name.lstrip("-") in SHARED_NAMES for name in self.names)


class Argument:
    """An argument that is not an option."""

    def __init__(self, info):
        self.value = info["valueName"]
        self.text = info.get("abstract", "")
        self.is_optional = info["isOptional"]
        self.is_repeating = info["isRepeating"]


class Command:
    """A command, with the parts of its page."""

    def __init__(self, info, parents=()):
        self.words = (*parents, info["commandName"])
        self.abstract = info.get("abstract", "")
        self.options, self.arguments = [], []
        for argument in info.get("arguments", []):
            if not argument["shouldDisplay"]:
                continue
            if argument["kind"] == "positional":
                self.arguments.append(Argument(argument))
                continue
            option = Option(argument)
            # An inverted flag (--no-revoke) follows its flag and has no text of its own.
            before = self.options[-1] if self.options else None
            if before and not option.value and option.text in ("", before.text) and not before.value \
                    and option.names == ["--no-" + before.names[-1][2:]]:
                before.names += option.names
            else:
                self.options.append(option)
        self.paragraphs, self.examples, self.statuses = parts(info.get("discussion", ""))
        self.commands = [Command(command, self.words) for command in info.get("subcommands", [])
                         if command.get("shouldDisplay", True) and command["commandName"] != "help"]

    @property
    def page(self):
        return "-".join(self.words)

    def all(self):
        """The commands below this one, in their order."""
        for command in self.commands:
            yield command
            yield from command.all()

    def option(self, name):
        """The option with this name; None if there is none."""
        return next((option for option in self.options if name in option.names), None)

    def command(self, words):
        """The command below this one that the words begin with, as far as they name one."""
        found = self
        for word in words:
            below = next((command for command in found.commands if command.words[-1] == word), None)
            if not below:
                break
            found = below
        return found


def parts(discussion):
    """The paragraphs of a description, the lines of the examples, and the exit statuses with their texts."""
    lines = discussion.split("\n")
    examples = lines.index("Examples:") if "Examples:" in lines else len(lines)
    statuses = lines.index("Exit status:") if "Exit status:" in lines else len(lines)
    paragraphs = [paragraph.split("\n") for paragraph in re.split(r"\n\n+", "\n".join(lines[:examples]).strip("\n"))]
    found = []
    for line in lines[statuses + 1:]:
        status = re.match(r" +(\d+)  (\S.*)", line)
        if status:
            found.append((int(status[1]), status[2]))
        elif line.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return [paragraph for paragraph in paragraphs if paragraph != [""]], \
        [line[2:] for line in lines[examples + 1:statuses] if line.strip()], found


def program_help(vaultctl):
    """The root command, as the program describes itself."""
    try:
        dump = subprocess.run([os.path.abspath(vaultctl), "--experimental-dump-help"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=True).stdout
        return Command(json.loads(dump)["command"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise Mistake(f"{vaultctl} does not print its help as JSON: {error}") from error


# Checks


def shell_commands(lines):
    """The words of each call of vaultctl in the lines of a shell, without redirections."""
    text = re.sub(r"\\\n", " ", "\n".join(lines))
    for line in text.split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        words, is_start, is_target = None, True, False
        for token in [*lexer, ";"]:
            if set(token) <= set("();|&"):
                if words is not None:
                    yield words
                words, is_start = None, True
            elif set(token) <= set("<>&"):
                is_target = True
            elif is_target:
                is_target = False
            elif words is not None:
                words.append(token)
            elif is_start:
                is_start = bool(re.fullmatch(r"[A-Za-z_]\w*=.*", token))
                words = [] if token == "vaultctl" else None


def check_call(root, words, place):
    """Checks a call of vaultctl in an example: its command, its options and the number of its arguments."""
    command = root.command(words)
    call = "vaultctl " + " ".join(words)
    if command is root or command.commands:
        raise Mistake(f"{place}: there is no such command: {call}")
    arguments = 0
    rest = iter(words[len(command.words) - 1:])
    for word in rest:
        if word == "--":
            arguments += len(list(rest))
        elif word.startswith("-") and word != "-":
            option = command.option(word.split("=")[0])
            if not option:
                raise Mistake(f"{place}: {' '.join(command.words)} has no option {word}: {call}")
            if option.value and "=" not in word and next(rest, None) is None:
                raise Mistake(f"{place}: {word} needs a value: {call}")
        else:
            arguments += 1
    least = sum(not argument.is_optional for argument in command.arguments)
    most = None if any(argument.is_repeating for argument in command.arguments) else len(command.arguments)
    if arguments < least or most is not None and arguments > most:
        raise Mistake(f"{place}: the number of arguments is wrong: {call}")


def calls(text):
    """The words of each command that a text names in quotation marks, as in "vaultctl slot add" or "vaultctl help store"."""
    for words in re.findall(r'"vaultctl(?: help)?((?: [a-z][a-z-]*)+)', text):
        yield words.split()


def check_text(root, known, text, place):
    """Checks that the options and commands that a text names exist."""
    for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
        if name not in known:
            raise Mistake(f"{place}: there is no option {name}")
    for words in calls(text):
        if root.command(words) is root:
            raise Mistake(f"{place}: there is no command vaultctl {words[0]}")


def check(root, top):
    """Checks that each page has all of its parts, and names only what exists."""
    known = {name for command in [root, *root.all()] for option in command.options for name in option.names}
    known.add("--generate-completion-script")
    for command in root.all():
        place = " ".join(command.words)
        if not command.abstract or not command.paragraphs:
            raise Mistake(f"{place}: there is no description")
        calls = list(shell_commands(command.examples))
        if len(calls) < 2:
            raise Mistake(f"{place}: there are fewer than two examples")
        if not command.statuses:
            raise Mistake(f"{place}: there are no exit statuses")
        numbers = [status for status, _ in command.statuses]
        if numbers != sorted(set(numbers)) or not set(numbers) <= set(STATUSES):
            raise Mistake(f"{place}: the exit statuses are not in order, or one does not exist")
        for words in calls:
            check_call(root, words, place)
        for option in command.options + command.arguments:
            if not option.text:
                raise Mistake(f"{place}: {getattr(option, 'names', [option.value])[0]} has no text")
            check_text(root, known, option.text, place)
        for paragraph in command.paragraphs:
            check_text(root, known, " ".join(paragraph), place)
        for _, text in command.statuses:
            check_text(root, known, text, place)
    check_top(root, known, top)


def check_top(root, known, top):
    """Checks the page that is written by hand: the place of the commands, the shared options, and what the page names."""
    if top.count(MARKER + "\n") != 1:
        raise Mistake(f"{TOP.name}: there is not one line {MARKER}, where the list of commands goes")
    text = top.replace("\\-", "-")
    described = set(re.findall(r"(?<=Fl )-?[A-Za-z][a-z-]*", "\n".join(re.findall(r"^\.It .*Fl .*", text, re.MULTILINE))))
    shared = {name[1:] for command in root.all() for option in command.options if option.is_shared for name in option.names}
    for name in sorted(shared - described):
        raise Mistake(f"{TOP.name}: the option -{name} of every command is not described")
    for name in re.findall(r"(?<=Fl )-[a-z][a-z-]*", text):
        if f"-{name}" not in known:
            raise Mistake(f"{TOP.name}: there is no option -{name}")
    for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.MULTILINE | re.DOTALL):
        for words in shell_commands([line[2:] for line in block.split("\n") if line.startswith("$ ")]):
            check_call(root, words, TOP.name)


# Pages


def escaped(text):
    """The text, so that mdoc prints it as it is, within a line of text or as an argument of a macro."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("~", "\\(ti").replace("^", "\\(ha")
    return "".join(letter if ord(letter) < 128 else f"\\[u{ord(letter):04X}]" for letter in text)


def text_lines(text):
    """The lines of a paragraph, one sentence each."""
    for sentence in re.split(r"(?<=[.!?:]) +(?=[A-Z\"(-])", text):
        # The name of an option is not hyphenated.
        line = re.sub(r"(?<![\w\\-])\\-\\-(?=\w)", r"\\%\\-\\-", escaped(sentence))
        yield re.sub(r"^(?=[.'])", r"\\&", line)


def literal_lines(lines):
    """The lines of an example, to be copied from the page."""
    for line in lines:
        yield re.sub(r"^(?=\.)", r"\\&", escaped(line).replace("'", "\\(aq").replace("`", "\\(ga"))


def paragraph_lines(paragraph):
    """The lines of a paragraph. An indented line stands by itself."""
    text = []
    for line in paragraph:
        if line.startswith("  "):
            yield from text_lines(" ".join(text))
            yield from [".Bd -literal -offset indent -compact", *literal_lines([line[2:]]), ".Ed"]
            text = []
        else:
            text.append(line)
    if text:
        yield from text_lines(" ".join(text))


def name_lines(option):
    """The names of an option with its value, as arguments of .It or .Op."""
    value = f" Ar {escaped(option.value)}" if option.value else ""
    return " , ".join(f"Fl {escaped(name[1:])}{value}" for name in option.names)


def option_lines(options):
    yield ".Bl -tag -width Ds"
    for option in options:
        yield f".It {name_lines(option)}"
        yield from text_lines(option.text)
    yield ".El"


def mentioned(root, command):
    """The pages of the commands that the page of a command names, and of its relatives."""
    texts = [" ".join(paragraph) for paragraph in command.paragraphs]
    texts += [option.text for option in command.options if not option.is_shared] + [text for _, text in command.statuses]
    pages = {"-".join(command.words[:-1])} | {below.page for below in command.commands}
    pages |= {root.command(words).page for words in calls(" ".join(texts))}
    return sorted(pages - {command.page} | {root.page})


def tagged(title, entries):
    """A section with a list of names and their texts; nothing for an empty list."""
    if entries:
        yield from [f".Sh {title}", ".Bl -tag -width Ds"]
        for name, text in entries:
            yield f".It {name}"
            yield from text_lines(text)
        yield ".El"


def page(root, command, date):
    """The lines of the page of a command."""
    own = [option for option in command.options if not option.is_shared]
    shared = [option for option in command.options if option.is_shared]
    abstract = command.abstract[0].lower() + command.abstract[1:].rstrip(".")
    yield f'.\\" Scripts/manual.py made this page from "vaultctl help {" ".join(command.words[1:])}".'
    yield f".Dd {date}"
    yield f".Dt {command.page.upper()} 1"
    yield from [".Os", ".Sh NAME", f".Nm {command.page}", f".Nd {escaped(abstract)}"]
    yield from [".Sh SYNOPSIS", ".Nm vaultctl", ".Cm " + " ".join(command.words[1:])]
    if command.commands:
        yield ".Ar subcommand"
    for argument in command.arguments:
        word = f"Ar {escaped(argument.value)}{' ...' if argument.is_repeating else ''}"
        yield f".Op {word}" if argument.is_optional else f".{word}"
    for option in own:
        yield ".Op " + name_lines(option).replace(" , ", " | ")
    yield ".Op Ar option ..."
    yield ".Sh DESCRIPTION"
    yield from text_lines(command.abstract)
    for paragraph in command.paragraphs:
        yield ".Pp"
        yield from paragraph_lines(paragraph)
        yield from tagged("SUBCOMMANDS", [(f"Xr {below.page} 1", below.abstract) for below in command.commands])
    yield from tagged("ARGUMENTS", [(f"Ar {escaped(argument.value)}", argument.text) for argument in command.arguments])

    yield ".Sh OPTIONS"
    untitled = [option for option in own if not option.section]
    if untitled:
        yield from option_lines(untitled)
    for section in dict.fromkeys(option.section for option in own if option.section):
        yield f".Ss {escaped(section)}"
        yield from option_lines([option for option in own if option.section == section])
    yield ".Ss Options of every command"
    yield ".Xr vaultctl 1"
    yield "describes the other options of this command:"
    names = [name for option in shared for name in option.names]
    for position, name in enumerate(names):
        yield f".Fl {escaped(name[1:])} {'.' if position == len(names) - 1 else ','}"
    yield from [".Sh EXIT STATUS", ".Bl -tag -width Ds -compact"]
    for status, text in command.statuses:
        yield f".It {status}"
        yield from text_lines(text)
    yield from [".El", ".Sh EXAMPLES", ".Bd -literal -offset indent", *literal_lines(command.examples), ".Ed"]
    yield ".Sh SEE ALSO"
    names = mentioned(root, command)
    for position, name in enumerate(names):
        yield f".Xr {name} 1" + ("" if position == len(names) - 1 else " ,")


def top_page(root, top, date):
    """The page that is written by hand, with the date and the list of commands."""
    commands = [".Bl -tag -width Ds"]
    for command in root.all():
        commands += [f".It Xr {command.page} 1", *text_lines(command.abstract)]
    text = re.sub(r"^\.Dd .*", lambda _: f".Dd {date}", top, count=1, flags=re.MULTILINE)
    return text.replace(MARKER + "\n", "\n".join([*commands, ".El"]) + "\n")


def newest_change():
    """The time of the pages, in seconds."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        if not given.isdecimal():
            raise Mistake("SOURCE_DATE_EPOCH is not a number of seconds")
        return int(given)
    try:
        def git(*words):
            return subprocess.run(["git", "-C", str(ROOT), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=60, check=True).stdout.decode().strip()
        # The sources may lie in the repository of another project.
        if not git("rev-parse", "--show-prefix"):
            return int(git("log", "-1", "--format=%ct"))
    except (OSError, subprocess.SubprocessError, ValueError):
        pass
    sources = [TOP, pathlib.Path(__file__), *(ROOT / "Sources" / "vaultctl").rglob("*.swift")]
    return int(max(source.stat().st_mtime for source in sources))


def mdoc_date(seconds):
    months = "January February March April May June July August September October November December".split()
    day = time.gmtime(seconds)
    return f"{months[day.tm_mon - 1]} {day.tm_mday}, {day.tm_year}"


def main(words):
    if len(words) != 2:
        print("usage: manual.py OUTDIR VAULTCTL", file=sys.stderr)
        return 64
    try:
        root = program_help(words[1])
        top = TOP.read_text(encoding="utf-8")
        check(root, top)
        date = mdoc_date(newest_change())
        pages = {root.page: top_page(root, top, date)}
        for command in root.all():
            pages[command.page] = "\n".join(page(root, command, date)) + "\n"
        for name, text in pages.items():
            (pathlib.Path(words[0]) / f"{name}.1").write_text(text, encoding="ascii")
    except (Mistake, OSError, UnicodeError) as error:
        print(f"manual: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
