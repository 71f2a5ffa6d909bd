#!/usr/bin/env python3
"""Draws latency against the size of the storage: draw-latency.py FILE… >latency.svg

The files are what `vaultctl benchmark --json` printed, of one machine and one length of secrets, each measurement in one of
them. The same files give the same picture, byte for byte.
"""

import json
import math
import sys
from xml.sax.saxutils import escape

TITLES = {"file": "vault", "agent": "through the agent", "secret-service": "gnome-keyring"}
LIMITS = {"fdatasync": "fdatasync alone", "echo": "echo alone"}
PANELS = {"store": "fdatasync", "retrieve": "echo"}
WIDTH, HEIGHT = 880, 330
TOP, BOTTOM = 44, 280
PANEL, LEFT, PLOT = 440, 58, 216
STYLE = """
  text { font: 12px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #59636e; }
  .title { font-size: 14px; font-weight: 600; fill: #1c2128; }
  .grid { stroke: #dfe3e8; } .line { fill: none; stroke-width: 2.25; stroke-linejoin: round; }
  .limit { fill: none; stroke: #59636e; stroke-width: 1.25; stroke-dasharray: 6 4; }
  .line.file { stroke: #0969da; } .line.agent { stroke: #1a7f37; } .line.secret-service { stroke: #bc4c00; }
  .dot.file, text.file { fill: #0969da; } .dot.agent, text.agent { fill: #1a7f37; }
  .dot.secret-service, text.secret-service { fill: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1; } .title { fill: #e6edf3; } .grid { stroke: #2a313b; } .limit { stroke: #9198a1; }
    .line.file { stroke: #58a6ff; } .line.agent { stroke: #3fb950; } .line.secret-service { stroke: #f0883e; }
    .dot.file, text.file { fill: #58a6ff; } .dot.agent, text.agent { fill: #3fb950; }
    .dot.secret-service, text.secret-service { fill: #f0883e; }
  }
"""


def no_number(text):
    sys.exit(f"draw-latency: {text} is no figure: measure anew")


def scale_label(exponent):
    """A power of ten of microseconds."""
    unit, exponent = [("µs", exponent), ("ms", exponent - 3), ("s", exponent - 6)][min(2, max(0, exponent) // 3)]
    return f"{10 ** exponent} {unit}"


def latency_label(microseconds):
    """A latency with two digits that mean something."""
    value, unit = (microseconds, "µs") if microseconds < 1000 else (microseconds / 1000, "ms")
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def spread(labels):
    """The labels (y, …) from top to bottom, moved so far that none covers another."""
    placed = []
    for y, *rest in sorted(labels):
        placed.append([max(y, placed[-1][0] + 15 if placed else y), *rest])
    lowest = BOTTOM + 4
    for label in reversed(placed):
        label[0] = min(label[0], lowest)
        lowest = label[0] - 15
    return placed


class Panel:
    """One operation: the lines of the backends, and what the machine takes."""

    def __init__(self, number, operation, rows, items, latencies, size):
        self.left = number * PANEL + LEFT
        self.operation, self.rows = operation, rows
        self.items, self.latencies, self.size = items, latencies, size

    def x(self, items):
        low, high = map(math.log10, self.items)
        return self.left + PLOT * (math.log10(items) - low) / (high - low)

    def y(self, microseconds):
        low, high = self.latencies
        return BOTTOM - (BOTTOM - TOP) * (math.log10(microseconds) - low) / (high - low)

    def draw(self):
        yield f'<text class="title" x="{self.left}" y="24">{self.operation} {self.size:,} bytes, median</text>'
        low, high = self.latencies
        for exponent in range(low, high + 1):
            y = self.y(10**exponent)
            yield f'<path class="grid" d="M{self.left} {y:.1f}h{PLOT}"/>'
            yield f'<text text-anchor="end" x="{self.left - 8}" y="{y + 4:.1f}">{scale_label(exponent)}</text>'
        for exponent in range(round(math.log10(self.items[0])), math.floor(math.log10(self.items[1])) + 1):
            x = self.x(10**exponent)
            yield f'<path class="grid" d="M{x:.1f} {TOP}V{BOTTOM}"/>'
            yield f'<text text-anchor="middle" x="{x:.1f}" y="{BOTTOM + 18}">{10 ** exponent:,}</text>'
        yield f'<text text-anchor="middle" x="{self.left + PLOT / 2}" y="{BOTTOM + 38}">items in the storage</text>'
        labels = []
        limits = [row["limitP50"] for row in self.rows if row.get("limit") == PANELS[self.operation]]
        if limits:
            y = self.y(limits[0])
            yield f'<path class="limit" d="M{self.left} {y:.1f}h{PLOT}"/>'
            labels.append((y, self.left + PLOT, "", f"{LIMITS[PANELS[self.operation]]}, {latency_label(limits[0])}"))
        for backend, title in TITLES.items():
            places = [(self.x(row["items"]), self.y(row["p50"])) for row in self.rows if row["backend"] == backend]
            if not places:
                continue
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline class="line {backend}" points="{points}"/>'
            for x, y in places:
                yield f'<circle class="dot {backend}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
            last = [row for row in self.rows if row["backend"] == backend][-1]
            labels.append((places[-1][1], places[-1][0], backend, f"{title}, {latency_label(last['p50'])}"))
        # A line that ends early has its label at its end; the other labels share the margin.
        margin = self.left + PLOT
        for y, x, style, text in spread([label for label in labels if label[1] > margin - 1]):
            yield f'<text class="{style}" x="{x + 8:.1f}" y="{y + 4:.1f}">{escape(text)}</text>'
        for y, x, style, text in [label for label in labels if label[1] <= margin - 1]:
            yield f'<text class="{style}" x="{x + 8:.1f}" y="{y + 4:.1f}">{escape(text)}</text>'


def picture(rows):
    rows = sorted((row for row in rows if row["backend"] in TITLES), key=lambda row: row["items"])
    if len({row["valueSize"] for row in rows}) != 1:
        sys.exit("draw-latency: the files have to be of one length of secrets: measure them anew")
    shown = [row for row in rows if row["operation"] in PANELS]
    items = (min(row["items"] for row in shown), max(row["items"] for row in shown))
    values = [row[name] for row in shown for name in ("p50", "limitP50") if row.get(name)]
    latencies = (math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))))
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    size = rows[0]["valueSize"]
    yield f"<title>Median latency of storing and retrieving {size:,} bytes, against the number of items</title>"
    yield f"<style>{STYLE}</style>"
    for number, operation in enumerate(PANELS):
        own = [row for row in shown if row["operation"] == operation]
        yield from Panel(number, operation, own, items, latencies, size).draw()
    yield "</svg>"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    measured = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            measured += json.load(file, parse_constant=no_number)
    for line in picture(measured):
        print(line)
