"""Makes vaults with vaultctl in a directory of its own and asks both programs what is in them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VAULTCTL = os.environ.get("VAULTCTL") or str(HERE.parents[1] / ".build-release/release/vaultctl")

# The words of vaultctl's messages, and the code behind each: vaultctl prints only the words and the exit status.
CODES = {
    "locked": "locked",
    "wrong passphrase or key": "wrongPassphrase",
    "this unlock method may not do that": "notPermitted",
    "the item belongs to another device": "wrongDevice",
    "damaged or tampered with": "corrupt",
    "the vault is older than the one this device has seen": "rolledBack",
    "this file lacks changes that this device has seen": "forked",
    "the file is not a vault": "notAVault",
    "written by a newer program": "unsupportedFormat",
}


class Workshop:
    """A vault, a state directory and a key file. Each call of vaultctl works on these unless told otherwise."""

    def __init__(self, add_cleanup, method=None):
        self.directory = Path(tempfile.mkdtemp(prefix="reader."))
        add_cleanup(shutil.rmtree, self.directory)
        self.vault = self.directory / "a.vault"
        self.state = self.directory / "state"
        self.method = method or ("--key-file", self.directory / "key")
        self.vaultctl("init")

    def file(self, name, contents):
        """A file of mode 0600."""
        path = self.directory / name
        path.write_bytes(contents)
        path.chmod(0o600)
        return path

    def run(self, *arguments, input=b"", method=None, state=None, vault=None):
        places = ["--vault", vault or self.vault, "--state-dir", state or self.state, *(method or self.method)]
        # Options come before a `--`, and a key follows it.
        front, back = arguments, ()
        if "--" in arguments:
            split = arguments.index("--")
            front, back = arguments[:split], arguments[split:]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory)}
        return subprocess.run(
            [VAULTCTL, *front, *places, "--no-input", *back], input=input, capture_output=True, env=environment
        )

    def vaultctl(self, *arguments, **options):
        """Standard output of a call that has to succeed."""
        done = self.run(*arguments, **options)
        if done.returncode:
            raise AssertionError(f"vaultctl {arguments[0]}: {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    def store(self, key, secret, *options, service="default"):
        self.vaultctl("store", "--binary", "--service", service, *options, "--", key, input=secret)

    def told(self, **options):
        """What vaultctl tells of the vault: exit status, code or None, items with their values."""
        done = self.run("list", "--all-services", "--json", **options)
        if done.returncode not in (0, 5, 6) or not done.stdout:
            return done.returncode, code(done), None
        items = []
        for listed in json.loads(done.stdout):
            place = ("--service", listed["service"], "--json", "--", listed["key"])
            one = self.run("retrieve", *place, **options)
            if one.returncode:
                return one.returncode, code(one), None
            items.append(json.loads(one.stdout))
            if listed != {name: value for name, value in items[-1].items() if not name.startswith("value")}:
                raise AssertionError("list and retrieve differ")
        items.sort(key=lambda item: (item["service"].encode(), item["key"].encode()))
        return done.returncode, None, items

    def read(self, method=None, state=None, vault=None):
        """What the reader, as a program, tells of it: the same, and everything it printed."""
        arguments = [vault or self.vault, *(method or self.method)]
        if state != "none":
            arguments += ["--state-dir", state or self.state]
        done = subprocess.run([sys.executable, HERE / "read_vault.py", *arguments], capture_output=True)
        if done.stderr:
            raise AssertionError(done.stderr.decode())
        answer = json.loads(done.stdout)
        return done.returncode, answer.get("code"), answer.get("items"), answer


def code(done):
    """The code behind vaultctl's line, or the line itself when it is none of those a reader can give."""
    line = done.stderr.decode().strip().splitlines()[-1].removeprefix("vaultctl: ")
    return next((name for words, name in CODES.items() if line.startswith(words)), line)
