#!/usr/bin/env python3
"""pins.py write: writes Package.resolved, so that a build takes the packages of Scripts/tested-versions.txt and no others.
pins.py check BUILD: compares the packages of the build directory BUILD with Scripts/tested-versions.txt. Status 1 when they differ.
pins.py tested BUILD: prints the lines that Scripts/tested-versions.txt should have for the packages of BUILD.
pins.py --self-test: shows that `check` finds a difference.
"""

import json
import pathlib
import sys
import tempfile


def read_build(directory):
    """The packages that a build checked out, as SwiftPM's notes in its directory say."""
    try:
        notes = json.loads(pathlib.Path(directory, "workspace-state.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"pins: nothing is built in {directory}: build it first")
    packages = {}
    for dependency in notes["object"]["dependencies"]:
        package, state = dependency["packageRef"], dependency["state"].get("checkoutState", {})
        packages[package["identity"]] = (
            state.get("version", "unversioned"),
            state.get("revision", "unknown"),
            package["location"],
        )
    return packages


def read_tested(path):
    """The packages of the list: those lines that have a revision and an address."""
    lines = path.read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {line[0]: tuple(line[1:]) for line in words if len(line) == 4}


def write(tested, resolved):
    pins = [
        {
            "identity": name,
            "kind": "remoteSourceControl",
            "location": location,
            "state": {"revision": revision, "version": version},
        }
        for name, (version, revision, location) in sorted(tested.items())
    ]
    # Another build may read the file meanwhile.
    new = resolved.with_name(resolved.name + ".new")
    new.write_text(json.dumps({"pins": pins, "version": 3}, indent=2) + "\n", encoding="utf-8")
    new.replace(resolved)


def differences(tested, built):
    names = sorted(tested.keys() | built.keys())
    return [
        f"{name}: tested {' '.join(tested.get(name, ['not']))}, built {' '.join(built.get(name, ['not']))}"
        for name in names
        if tested.get(name) != built.get(name)
    ]


def self_test():
    tested = {"one": ("1.2.3", "a" * 40, "https://example.com/one"), "two": ("2.0.0", "b" * 40, "https://example.com/two")}
    assert not differences(tested, dict(tested))
    for change in (
        {"one": ("1.2.4", "a" * 40, "https://example.com/one")},
        {"one": ("1.2.3", "c" * 40, "https://example.com/one")},
        {"one": ("1.2.3", "a" * 40, "https://example.com/other")},
        {"three": ("1.0.0", "d" * 40, "https://example.com/three")},
    ):
        assert len(differences(tested, tested | change)) == 1, change
    assert len(differences(tested, {"one": tested["one"]})) == 1
    with tempfile.TemporaryDirectory() as directory:
        resolved = pathlib.Path(directory, "Package.resolved")
        write(tested, resolved)
        pins = json.loads(resolved.read_text(encoding="utf-8"))["pins"]
        assert {(pin["identity"], pin["state"]["version"], pin["state"]["revision"], pin["location"]) for pin in pins} == {
            (name, *words) for name, words in tested.items()
        }


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    tested = read_tested(root / "Scripts/tested-versions.txt")
    match sys.argv[1:]:
        case ["write"]:
            write(tested, root / "Package.resolved")
        case ["check", build]:
            found = differences(tested, read_build(build))
            sys.exit("\n".join(found) if found else 0)
        case ["tested", build]:
            for name, words in sorted(read_build(build).items()):
                print(name, *words)
        case ["--self-test"]:
            self_test()
        case _:
            sys.exit(__doc__)


main()
