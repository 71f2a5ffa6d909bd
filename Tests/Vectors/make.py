#!/usr/bin/python3
"""Writes the vectors that the writer makes, and the manifest; `make vectors` runs it.

What vaultctl wrote stays as it is: nobody can write that again. With --check nothing is written, and what
differs is told.
"""

import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "IndependentReader")]

from writer.catalog import Catalog  # noqa: E402

MANIFEST = HERE / "manifest.json"
PARTS = "items forged_items changes slots keybag copies log torn damage index devices anchors exports".split()


def made():
    """The catalog of all that the writer makes."""
    catalog = Catalog()
    for part in PARTS:
        importlib.import_module(f"writer.vectors_{part}").add(catalog)
    return catalog


def recorded():
    """What the manifest says of the vectors that vaultctl wrote."""
    if not MANIFEST.exists():
        return []
    return [entry for entry in json.loads(MANIFEST.read_text())["vectors"] if entry["by"] != "writer"]


def files_of(entries):
    """Every file that these entries name, below this directory."""
    found = set()
    for entry in entries:
        found.add(entry["file"])
        for opening in entry["openings"]:
            if "state" in opening:
                found |= {str(path.relative_to(HERE)) for path in (HERE / opening["state"]).iterdir()}
    return found


def manifest(entries):
    """One line for each vector's own members, one for each way to open it."""
    return '{"format": 1, "vectors": [\n' + ",\n".join(_entry(entry) for entry in entries) + "\n]}\n"


def _entry(entry):
    def dump(value):
        return json.dumps(value, ensure_ascii=False)

    lines = [f" {dump(name)}: {dump(value)}," for name, value in entry.items() if name != "openings"]
    openings = ",\n".join(f"  {dump(opening)}" for opening in entry["openings"])
    return "\n".join(["{", *lines, f' "openings": [\n{openings}\n ]', "}"])


def differences():
    """What is not as the writer makes it."""
    catalog, theirs = made(), recorded()
    expected = {name: data for name, data in catalog.files.items()}
    found = {name: (HERE / name).read_bytes() for name in present() - files_of(theirs)}
    different = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
    if MANIFEST.read_text() != manifest(catalog.entries + theirs):
        different.append(MANIFEST.name)
    return sorted(different)


def present():
    """Every vector's file and every file of a state directory."""
    return {
        str(path.relative_to(HERE))
        for part in ("vaults", "exports")
        for path in (HERE / part).rglob("*")
        if path.is_file()
    }


def write():
    catalog, theirs = made(), recorded()
    kept = files_of(theirs)
    for name in present() - kept:
        (HERE / name).unlink()
    for name, data in catalog.files.items():
        path = HERE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for path in sorted((HERE / "vaults").rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    MANIFEST.write_text(manifest(catalog.entries + theirs))
    return len(catalog.entries), len(theirs)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(differences()) or None)
    print("%d vectors written, %d kept" % write())
