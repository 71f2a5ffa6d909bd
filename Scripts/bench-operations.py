#!/usr/bin/python3
"""bench-operations.py check|update [--some] RUN THRESHOLDS JSON: holds what ordo-one/benchmark measured, exported for JMH in
RUN, against THRESHOLDS, or writes those anew; what was measured goes to JSON. With --some RUN has some benchmarks only.

The plugin has thresholds of its own, for the 90th percentile. On a busy machine that is what its neighbours did, so this holds
the median, and only what became worse is an error; of what does the same each time, another count is one.
"""

import json
import re
import sys

# The metrics, and their names in the export.
METRICS = {
    "microseconds": "Time (wall clock)",
    "reads": "Syscalls (read)",
    "writes": "Syscalls (write)",
    "bytesWritten": "Bytes (write logical)",
}


# Operations that do the same each time, to the call and the byte: their median of many runs is exact.
EXACT = re.compile(r"^file-(store|replace|compare-and-store|lock|list|batch-of|retrieve-(missing|\d+K?i?B))")


def tolerance(name, metric):
    """How many times its threshold a median may be; 0 for no other than that; None where it is not held."""
    waits_for_others = name.startswith(("agent-", "secret-service-"))
    if metric == "microseconds":
        # Leaves room for another or a busy machine. An operation that waits for another process also waits for a
        # processor.
        return 10 if waits_for_others else 5
    # The file's reads and writes are the same each time, except for how writers meet, and for the contents stored
    # before a verification. Other backends have no file here: their counts come from threads that wake one another.
    if not name.startswith("file-"):
        return None
    if EXACT.match(name):
        return 0
    return 2 if re.search(r"-by-(4|16)$|^file-(verify|compact)-", name) else 1.25


def median(metric):
    return metric["scorePercentiles"].get("50.0", metric["scorePercentiles"].get("50"))


def no_number(text):
    sys.exit(f"bench-operations: {text} is no figure: measure anew")


def load(file):
    """The file's JSON. What compares as neither more nor less than anything is within any threshold, and refused."""
    return json.load(file, parse_constant=no_number)


def measured(path):
    with open(path) as run:
        benchmarks = load(run)
    figures = {}
    for benchmark in benchmarks:
        name = benchmark["benchmark"].split(".")[-1]
        if name in figures:
            sys.exit(f"bench-operations: {name} was measured twice: give them names of their own")
        metrics = benchmark["secondaryMetrics"]
        figures[name] = {
            key: median(metrics[metric])
            for key, metric in METRICS.items()
            if metric in metrics and tolerance(name, key) is not None
        }
    return dict(sorted(figures.items()))


def write(path, figures):
    """A line for each, so that a change shows what changed."""
    lines = [f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in figures.items()]
    with open(path, "w") as output:
        output.write("{\n" + ",\n".join(lines) + "\n}\n")


def check(figures, thresholds, some):
    failures = []
    width = max(map(len, figures))
    for name, values in figures.items():
        print(f"  {name:<{width}}  {values['microseconds']:>14,.1f} µs", end="")
        print("".join(f"  {values[key]:,.0f} {key}" for key in list(METRICS)[1:] if key in values))
        limits = thresholds.get(name)
        if limits is None:
            failures.append(f"{name} has no threshold")
            continue
        failures += [f"{name}: no {key}, which has a threshold" for key in limits if key not in values]
        # No other machine is that much faster: the operation does not do its work.
        if values["microseconds"] <= limits["microseconds"] / 50:
            failures.append(f"{name}: {values['microseconds']:,.1f} microseconds are too few for it")
        for key, value in values.items():
            limit, times = limits.get(key, 0), tolerance(name, key)
            if times == 0:
                if value != limit:
                    failures.append(f"{name}: {value:,.1f} {key} instead of {limit:,.1f}")
                continue
            if value == 0 < limit:
                failures.append(f"{name}: no {key} instead of {limit:,.1f}")
            # A count of zero or few may grow by one.
            most = limit * times + (key != "microseconds")
            if value > most:
                failures.append(f"{name}: {value:,.1f} {key}, more than {most:,.1f}")
    if not some:
        failures += [f"{name} has a threshold, and is not measured" for name in thresholds if name not in figures]
    return failures


def main():
    mode, some = sys.argv[1], "--some" in sys.argv
    run, threshold_path, output = [word for word in sys.argv[2:] if word != "--some"]
    figures = measured(run)
    write(output, figures)
    try:
        with open(threshold_path) as file:
            thresholds = load(file)
    except FileNotFoundError:
        thresholds = {}
    if mode == "update":
        write(threshold_path, dict(sorted((thresholds | figures if some else figures).items())))
        return
    failures = check(figures, thresholds, some)
    if failures:
        print("\nworse than the thresholds; after a change that is meant to be, make bench-thresholds:")
        print("\n".join(failures))
        sys.exit(1)
    print(f"\n{len(figures)} operations are within their thresholds")


main()
