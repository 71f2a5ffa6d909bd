#!/usr/bin/python3
"""bench-table.py LINES JSON [TARGETS]: makes a table, in Markdown, and the file JSON of the lines that benchmarks wrote. One of
another number of targets is an error.

Whether a target is met is told, and is no error: a busy machine misses some, and what is missed on a quiet one is named
with its reasons in Benchmarks/RESULTS.md. One that is missed by half of it is an error: that much no neighbour does to one side
of a ratio alone.
"""

import json
import os
import platform
import subprocess
import sys


def number(value):
    """Three digits, and all of those before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2}f}"


def duration(microseconds):
    if microseconds < 0.1:
        return f"{microseconds * 1000:.0f} ns"
    return f"{number(microseconds)} µs" if microseconds < 1000 else f"{number(microseconds / 1000)} ms"


def machine():
    with open("/proc/cpuinfo") as information:
        models = [line.split(":")[1].strip() for line in information if line.startswith("model name")]
    file_system = subprocess.run(["df", "--output=fstype", "."], capture_output=True, text=True).stdout.split()
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {
        "processor": models[0] if models else platform.machine(),
        "processors": os.cpu_count(),
        "memoryGiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        "fileSystem": file_system[-1] if file_system else "unknown",
        "commit": commit.stdout.strip() or "unknown",
    }


def is_far(result):
    """Whether a target is missed by half of it."""
    if result["bound"] == "at most":
        return result["value"] > result["limit"] * 1.5
    return result["value"] * 1.5 < result["limit"]


def no_number(text):
    sys.exit(f"bench-table: {text} is no figure: measure anew")


with open(sys.argv[1]) as lines:
    results = [json.loads(line, parse_constant=no_number) for line in lines]
judged = [result for result in results if "limit" in result]
facts = machine()
with open(sys.argv[2], "w") as output:
    json.dump({"machine": facts, "results": results}, output, indent=2, ensure_ascii=False)
    output.write("\n")

print()
print("{processors} × {processor}, {memoryGiB} GiB, {fileSystem}, Linux {kernel}, commit {commit}".format(**facts))
print()
print("| what | measured | within the run | target | | medians |")
print("|---|---|---|---|---|---|")
for result in results:
    unit = "" if result["unit"] == "×" else " " + result["unit"]
    target, verdict = "", ""
    if "limit" in result:
        target = ("≤ " if result["bound"] == "at most" else "≥ ") + f"{result['limit']:,g}"
        verdict = "met" if result["isMet"] else "**missed**"
    medians = "; ".join(f"{figure['name']} {duration(figure['p50'])}" for figure in result["figures"])
    print(
        f"| {result['name']} | {number(result['value'])}{unit} | {number(result['low'])}–{number(result['high'])} "
        f"| {target} | {verdict} | {medians} |"
    )
print()
print(f"{sum(result['isMet'] for result in judged)} of {len(judged)} targets met; all figures are in {sys.argv[2]}")
if sys.argv[3:] not in ([], [str(len(judged))]):
    sys.exit(f"bench-table: {sys.argv[3]} targets are to be there")
if far := [result["name"] for result in judged if is_far(result)]:
    sys.exit("bench-table: missed by half of the target or more: " + "; ".join(far))
