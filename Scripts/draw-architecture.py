#!/usr/bin/env python3
"""Draws the pictures of the README and of the documentation: draw-architecture.py [--check]

Writes the architecture, for the README and for the articles, and the key hierarchy. The output is always the same. With --check,
writes nothing and compares the committed pictures with the output. In both cases, the modules and programs in the picture must be
those of Package.swift.

Each picture has a background, because a dark page shows a picture with the colours of a light one when the system's mode differs from
the page's. The pictures are 480 units wide, and the smallest text is 12 units, so that a phone shows readable text.
"""

import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
CATALOG = "Sources/TokenVault/Documentation.docc"
WIDTH = 480
LIGHT = {
    "page": "#ffffff", "frame": "#d0d7de", "text": "#1c2128", "soft": "#59636e", "line": "#59636e",
    "plain": "#f6f8fa", "plain-edge": "#8c959f", "main": "#ddf4ff", "main-edge": "#0969da",
    "kept": "#dafbe1", "kept-edge": "#1a7f37",
}
DARK = {
    "page": "#0d1117", "frame": "#30363d", "text": "#e6edf3", "soft": "#9198a1", "line": "#9198a1",
    "plain": "#161b22", "plain-edge": "#6e7681", "main": "#0c2d6b", "main-edge": "#58a6ff",
    "kept": "#0f3d1c", "kept-edge": "#3fb950",
}
# What a character takes of the text's height: no less than in the widest of the usual fonts.
ADVANCE = 0.56


def style(colors):
    """The rules that depend on the colours, one a line."""
    return [
        f"text {{ fill: {colors['text']}; }}",
        f".small {{ fill: {colors['soft']}; }}",
        f".head {{ fill: {colors['soft']}; }}",
        f".page {{ fill: {colors['page']}; stroke: {colors['frame']}; }}",
        f".group {{ fill: none; stroke: {colors['frame']}; }}",
        *(
            f".{kind} {{ fill: {colors[kind]}; stroke: {colors[kind + '-edge']}; }}"
            for kind in ("plain", "main", "kept")
        ),
        f".line {{ stroke: {colors['line']}; }}",
        f".tip {{ fill: {colors['line']}; }}",
    ]


class Picture:
    def __init__(self, height, title, description):
        self.height, self.title, self.description = height, title, description
        self.parts = []

    def box(self, x, y, width, lines, kind="plain", height=44):
        """A box with one line of text, and perhaps lines of small text below it."""
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>')
        middle = x + width / 2
        first = y + height / 2 + 5 - 8.5 * (len(lines) - 1)
        for number, line in enumerate(lines):
            small = line.startswith("~")
            line = line.removeprefix("~")
            fits(line, 12 if small else 13, width - 6)
            self.text(middle, first + 17 * number, line, "small" if small else "")

    def text(self, x, y, text, kind=""):
        mark = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{mark} x="{x:g}" y="{y:g}">{escape(text)}</text>')

    def left(self, x, y, text, kind="head"):
        """Text that begins at a place."""
        fits(text, 12, WIDTH - 12 - x)
        self.parts.append(f'<text class="{kind} left" x="{x:g}" y="{y:g}">{escape(text)}</text>')

    def group(self, x, y, width, height):
        self.parts.append(f'<rect class="group" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')

    def arrow(self, path, kind="line"):
        self.parts.append(f'<path class="{kind}" d="{path}" marker-end="url(#tip)"/>')

    def line(self, path, kind="line"):
        self.parts.append(f'<path class="{kind}" d="{path}"/>')

    def svg(self):
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'width="{WIDTH}" height="{self.height}" role="img">'
        )
        yield f"<title>{escape(self.title)}</title>"
        yield f"<desc>{escape(self.description)}</desc>"
        yield "<defs>"
        yield (
            '  <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="tip" d="M0 0L8 4L0 8z"/></marker>'
        )
        yield "</defs>"
        yield "<style>"
        yield "  text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; text-anchor: middle; }"
        yield "  .small, .head { font-size: 12px; } .head { font-weight: 600; } .left { text-anchor: start; }"
        yield "  .line { fill: none; stroke-width: 1.25; } .dashed { stroke-dasharray: 4 3; }"
        for rule in style(LIGHT):
            yield f"  {rule}"
        yield "  @media (prefers-color-scheme: dark) {"
        for rule in style(DARK):
            yield f"    {rule}"
        yield "  }"
        yield "</style>"
        yield f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}"/>'
        yield from self.parts
        yield "</svg>"


def fits(text, size, room):
    if len(text) * size * ADVANCE > room:
        sys.exit(f"draw-architecture: no room for this text: {text}")


def architecture():
    """From programs to the places of secrets."""
    left, wide, right, narrow = 36, 210, 286, 182
    picture = Picture(
        621,
        "How programs reach their secrets through TokenStorage",
        "Apps, TokenVaultAuth and vaultctl call TokenStorage. Its backends are the desktop keyring, the agent, the file vault and "
        "memory, and backends of other packages. The agent and the file vault use the vault file and the state directory.",
    )
    picture.left(12, 22, "programs")
    picture.box(12, 32, 210, ["app or auth SDK", "~Swift"])
    picture.box(258, 32, 210, ["vaultctl", "~users and scripts"])
    picture.box(36, 104, 186, ["TokenVaultAuth", "~sign-in and refresh"])
    picture.box(258, 104, 186, ["TokenVaultOAuth", "~requests to providers"])
    picture.arrow("M129 76V101")
    picture.arrow("M288 76V90H180V101")
    picture.arrow("M222 126H255")
    picture.arrow("M22 76V173")
    picture.arrow("M458 76V173")
    picture.arrow("M129 148V173")
    picture.box(12, 176, 456, ["TokenStorage", "~TokenVaultCore: store, retrieve, list, commit"], "main")

    backends = [
        (["SecretServiceTokenStorage", "~TokenVaultDesktop"], ["desktop keyring"]),
        (["AgentTokenStorage", "~VaultAgent"], ["vaultctl-agent", "~holds open vaults"]),
        (["FileTokenStorage", "~TokenVaultFile"], ["vault file", "~keybag, sealed records"]),
        (["InMemoryTokenStorage", "~TokenVaultCore, for tests"], ["state directory", "~device key, anchor"]),
        (["your own backend", "~see TokenVaultTesting"], None),
    ]
    top, step = 258, 56
    picture.left(left, top - 10, "backends")
    picture.left(right, top - 10, "places")
    picture.line(f"M24 220V{top + step * (len(backends) - 1) + 22}")
    for number, (backend, place) in enumerate(backends):
        y = top + step * number
        picture.arrow(f"M24 {y + 22}H{left - 3}")
        picture.box(left, y, wide, backend)
        if place:
            picture.box(right, y, narrow, place, "plain" if "vaultctl-agent" in place else "kept")
        if number < 3:
            picture.arrow(f"M{left + wide} {y + 22}H{right - 3}")
    middle = right + narrow / 2
    picture.arrow(f"M{middle:g} {top + step + 44}V{top + 2 * step - 3}")
    picture.line(f"M{middle:g} {top + 2 * step + 44}V{top + 3 * step}", "line dashed")
    for number, line in enumerate(
        [
            "The module TokenVault is TokenVaultCore, TokenVaultFile and",
            "TokenVaultDesktop. Keys enforce all five policies of a vault. The",
            "device key is kept outside the vault file. The programs",
            "vaultctl-oauth and vaultctl-benchmark work for vaultctl.",
        ]
    ):
        picture.left(12, top + step * len(backends) + 16 + 17 * number, line, "small")
    return picture


def keys():
    """From unlock methods to items."""
    columns, width = (18, 171, 324), 138
    picture = Picture(
        506,
        "How an unlock method leads to the items of a vault",
        "Each unlock method is a slot. A slot of the scope all leads to the root key, and a passphrase also to the passcode root. A "
        "slot of the scope after first unlock leads to the after-first-unlock root, which also comes from the root key. The roots "
        "open the class keys, those of this device only together with the device key. The class keys open the items.",
    )
    picture.left(12, 22, "slots: one for each unlock method")
    slots = [("passphrase", "Argon2id"), ("recovery key", "BLAKE2b"), ("key file", "BLAKE2b"), ("keyring", "BLAKE2b")]
    for number, (name, function) in enumerate(slots):
        picture.box(12 + 117 * number, 32, 105, [name, f"~{function}"])
    roots = 142
    picture.left(12, roots - 10, "roots")
    picture.box(columns[0], roots, width, ["passcode root", "~passphrases only"])
    picture.box(columns[1], roots, width, ["root key", "~scope: all"], "main")
    picture.box(columns[2], roots, width, ["after-first-unlock", "root"])
    # Every slot of the scope all leads to the root key.
    for x in (104, 181, 298, 400):
        picture.line(f"M{x} 76V104")
    picture.line("M104 104H400")
    picture.arrow(f"M240 104V{roots - 3}")
    picture.arrow(f"M70 76V{roots - 3}")
    # A slot of the narrower scope leads to the after-first-unlock root alone.
    picture.line("M325 76V90H440", "line dashed")
    picture.arrow(f"M440 76V{roots - 3}", "line dashed")
    picture.arrow(f"M{columns[1] + width} {roots + 22}H{columns[2] - 3}")

    group = roots + 78
    picture.left(12, group - 10, "class keys")
    picture.group(10, group, 460, 164)
    portable, device = group + 12, group + 92
    picture.left(20, portable + 26, "for any device", "small")
    picture.left(20, device + 62, "for this device only: together with the device key", "small")
    for column, name in zip(columns[1:], ["whenUnlocked", "afterFirstUnlock"]):
        picture.box(column, portable, 127, [name])
    for column, name in zip(columns, ["whenPasscodeSet", "whenUnlocked", "afterFirstUnlock"]):
        picture.box(column, device, width, [name, "ThisDeviceOnly"])
    picture.arrow(f"M{columns[0] + 118} {roots + 44}V{device - 3}")
    for column in columns[1:]:
        picture.arrow(f"M{column + 64} {roots + 44}V{portable - 3}")
        picture.arrow(f"M{column + 133} {roots + 44}V{device - 3}")
    items = group + 194
    for column in columns:
        picture.arrow(f"M{column + width // 2} {group + 164}V{items - 3}")
    picture.box(10, items, 460, ["items", "~secret and metadata, each sealed under the keys of its class"], "kept")
    picture.left(12, items + 64, "Dashed: the scope after first unlock. Every slot also leads to the", "small")
    picture.left(12, items + 81, "log key, which opens the structure of the log and no item.", "small")
    return picture


def package_names():
    """The products of Package.swift, and the modules that TokenVault shows under its name."""
    manifest = (ROOT / "Package.swift").read_text(encoding="utf-8")
    products = re.findall(r'\.(?:library|executable)\(name: "([^"]+)"', manifest)
    umbrella = re.search(r'name: "TokenVault",\s*dependencies: \[([^\]]*)\]', manifest)
    if not products or not umbrella:
        sys.exit("draw-architecture: Package.swift is not as expected")
    return set(products), set(re.findall(r'"([^"]+)"', umbrella[1])), set(re.findall(r'name: "([^"]+)"', manifest))


def check_names(svg):
    """Ends the program unless the picture names each product, and no module that is not there."""
    products, parts, targets = package_names()
    words = set(re.findall(r"[A-Za-z]+(?:-[a-z]+)*", "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))))
    if missing := (products | parts) - words:
        sys.exit(f"draw-architecture: the picture lacks {', '.join(sorted(missing))} of Package.swift")
    modules = {word for word in words if re.match(r"TokenVault|VaultAgent|vaultctl", word)}
    if unknown := modules - targets:
        sys.exit(f"draw-architecture: Package.swift has no {', '.join(sorted(unknown))}")


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__.strip())
    drawn = {name: "\n".join(picture().svg()) + "\n" for name, picture in {"architecture": architecture, "keys": keys}.items()}
    check_names(drawn["architecture"])
    files = {
        "Documentation/architecture.svg": drawn["architecture"],
        f"{CATALOG}/architecture.svg": drawn["architecture"],
        f"{CATALOG}/keys.svg": drawn["keys"],
    }
    other = []
    for name, svg in files.items():
        path = ROOT / name
        if not arguments:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != svg:
            other.append(name)
    if other:
        sys.exit(f"draw-architecture: not as drawn: {', '.join(other)}: run Scripts/draw-architecture.py")


if __name__ == "__main__":
    main(sys.argv[1:])
