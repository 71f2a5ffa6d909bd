#!/usr/bin/python3
"""Has vaultctl write the vectors of `recordings`, and enters them in the manifest.

Each is written once: what is in the manifest already stays, since released versions' vaults open for ever. What is
found in a new one is held against what was stored before it is entered; only times are taken as they are.

    VAULTCTL=.build/debug/vaultctl Tests/Vectors/record.py
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "IndependentReader")]

import make  # noqa: E402
from recording import KEY_FILES, PASSPHRASES  # noqa: E402
from recordings import RECORDINGS  # noqa: E402
from test_vectors import VectorTests, as_told, secret  # noqa: E402

from export import read_export  # noqa: E402
from read_vault import open_vault  # noqa: E402

VAULTCTL = os.environ.get("VAULTCTL") or str(HERE.parents[1] / ".build/debug/vaultctl")


class Recorder:
    """A directory with key files and passphrases, in which vaultctl works on `a.vault`."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.commands, self.printed = [], []
        for name, contents in (KEY_FILES | PASSPHRASES).items():
            self._file(name, contents.encode())

    def _file(self, name, contents):
        path = self.directory / name
        path.write_bytes(contents)
        path.chmod(0o600)

    def run(self, command, input=None):
        """`command` as it would be typed there; `input` as text or bytes."""
        for number, text in enumerate(self.printed, 1):
            command = command.replace(f"%{number}", text)
        front = "" if input is None else f"printf {shlex.quote(printf(input))} | "
        self.commands.append(f"{front}vaultctl {command}")
        data = input.encode() if isinstance(input, str) else input or b""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        words = [VAULTCTL, *shlex.split(command), "--no-input"]
        done = subprocess.run(words, input=data, capture_output=True, cwd=self.directory, env=environment)
        if done.returncode:
            raise SystemExit(f"{command}: {done.returncode}: {done.stderr.decode()}")
        self.printed.append(done.stdout.decode().strip())
        return self.printed[-1]


def printf(data):
    """What printf makes these bytes of."""
    if isinstance(data, str) and data.isprintable():
        return data.replace("\\", "\\\\").replace("%", "%%")
    data = data.encode() if isinstance(data, str) else data
    return "".join(f"\\{byte:03o}" for byte in data)


def record(recording):
    """The manifest's entry, whose files are written."""
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(directory)
        for step in recording.steps:
            recorder.run(*(step if isinstance(step, tuple) else (step,)))
        entry = {"name": recording.name, "about": recording.about}
        path = Path(directory, recording.file)
        folder = "exports" if path.suffix == ".export" else "vaults"
        target = HERE / folder / f"{recording.name}{path.suffix}"
        data = path.read_bytes()
        trimmed = data.rstrip(b"\0") + bytes(64) if folder == "vaults" else data
        target.write_bytes(trimmed)
        entry["file"] = f"{folder}/{target.name}"
        if len(trimmed) < len(data):
            entry |= {"length": len(data), "changes": []}
        entry |= {"by": "vaultctl", "commands": recorder.commands, "fields": recording.fields, "openings": []}
        for opening in recording.openings:
            opening = dict(opening)
            for name, value in opening.items():
                if isinstance(value, str) and value.startswith("%"):
                    opening[name] = recorder.printed[int(value[1:]) - 1]
            entry["openings"].append(complete(opening, data, Path(directory), target, folder))
    return entry


def complete(opening, data, directory, target, folder):
    """The opening with what is found, which is as it was stored."""
    expected, refused = opening.pop("items", None), opening.pop("unreadable", [])
    if folder == "exports":
        if expected is None:
            return opening
        found = [as_told(item) for item in read_export(data, secret(opening).contents)]
        return opening | {"items": held(found, expected)}
    state = None
    if "state" in opening:
        name = opening["state"]
        state = target.with_suffix(f".{name}")
        opening["state"] = f"vaults/{state.name}"
        if not state.exists():
            state.mkdir()
            for path in (directory / name).iterdir():
                # The path where the vault was created does not matter.
                if path.suffix != ".path":
                    (state / path.name).write_bytes(path.read_bytes())
    if expected is None:
        return opening
    vault = open_vault(data, state, secret(opening))
    found, _ = VectorTests().items(data, vault, False)
    opening |= {
        "vault": vault.keybag.vault.hex(),
        "epoch": vault.log.epoch,
        "sequence": vault.log.sequence,
        "keybagGeneration": vault.keybag.generation,
        "slot": vault.slot.identifier,
    }
    return opening | {"items": held(found, expected), "unreadable": refused, "problems": [], "isTorn": False}


def held(found, expected):
    without = [{name: value for name, value in item.items() if name not in ("created", "modified")} for item in found]
    if without != expected:
        raise SystemExit(f"found {json.dumps(without, indent=1)}\nexpected {json.dumps(expected, indent=1)}")
    return found


if __name__ == "__main__":
    entries = json.loads(make.MANIFEST.read_text())["vectors"]
    there = {entry["name"] for entry in entries}
    entries += [record(recording) for recording in RECORDINGS if recording.name not in there]
    make.MANIFEST.write_text(make.manifest(entries))
