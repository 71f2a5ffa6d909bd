"""The published vectors: this reader finds in them what their manifest says, and they are all there."""

import base64
import json
import re
import sys
import unittest
from pathlib import Path

import recovery
from export import read_export
from failure import Failure
from items import live_frames, open_item
from keybag import KEY_FILE, KEYRING, PASSPHRASE, RECOVERY, read_copies
from keys import DESTROYED, NAMES, Secret, access
from primitives import keyed
from read_vault import open_vault

VECTORS = Path(__file__).resolve().parents[1] / "Vectors"
sys.path.insert(0, str(VECTORS))

import make  # noqa: E402
from writer.fields import text  # noqa: E402
from writer.format_fields import format_fields  # noqa: E402

ENTRIES = json.loads(make.MANIFEST.read_text())["vectors"]
WITHOUT_ROOT = {NAMES[policy] for policy in (1, 3, 5)}


def milliseconds(moment, _where):
    return moment


def contents(entry):
    """The bytes of a vector's file, with its changes."""
    data = bytearray((VECTORS / entry["file"]).read_bytes())
    length = entry.get("length", len(data))
    data = data[:length].ljust(length, b"\0")
    for change in entry.get("changes", []):
        replacement = bytes.fromhex(change["bytes"])
        data[change["at"] : change["at"] + len(replacement)] = replacement
    return bytes(data)


def secret(opening):
    for name, kind in {"passphrase": PASSPHRASE, "keyFile": KEY_FILE}.items():
        if name in opening:
            return Secret(kind, opening[name].encode())
        if f"{name}Base64" in opening:
            return Secret(kind, base64.b64decode(opening[f"{name}Base64"]))
    if "keyringKey" in opening:
        return Secret(KEYRING, bytes.fromhex(opening["keyringKey"]))
    return Secret(RECOVERY, recovery.read(opening["recoveryKey"].encode()))


def as_told(item):
    """An item of the reader's as it stands in the manifest: attributes as pairs, in the order of their names' bytes."""
    pairs = sorted(map(list, item.get("attributes", {}).items()), key=lambda pair: pair[0].encode())
    return item | ({"attributes": pairs} if pairs else {})


def told_offset(where):
    found = re.search(r"\bat (\d+)", where)
    return int(found[1]) if found else None


class VectorTests(unittest.TestCase):
    maxDiff = None

    def test_every_file_has_an_entry_and_every_entry_a_file(self):
        self.assertEqual(make.present(), make.files_of(ENTRIES))
        names = [entry["name"] for entry in ENTRIES]
        self.assertEqual(len(names), len(set(names)))
        vaults = {entry["file"] for entry in ENTRIES if entry["file"].startswith("vaults/")}
        self.assertGreaterEqual(len(vaults), 60)
        self.assertGreaterEqual(sum(entry["by"] == "vaultctl" for entry in ENTRIES), 10)

    def test_every_field_of_the_format_is_in_some_vector(self):
        fields = {field for entry in ENTRIES for field in entry["fields"]}
        self.assertEqual(set(format_fields()) - fields, set(), "fields that no vector names")
        self.assertEqual(fields - set(format_fields()), set(), "fields that Format.md does not have")
        self.assertGreater(len(format_fields()), 100)

    def test_writing_them_again_gives_the_same_bytes(self):
        self.assertEqual(make.differences(), [])

    def test_vaults(self):
        for entry in ENTRIES:
            if entry["file"].startswith("vaults/"):
                for number, opening in enumerate(entry["openings"]):
                    with self.subTest(entry["name"], opening=number):
                        self.check_vault(contents(entry), opening)

    def test_exports(self):
        for entry in ENTRIES:
            if entry["file"].startswith("exports/"):
                for number, opening in enumerate(entry["openings"]):
                    with self.subTest(entry["name"], opening=number):
                        try:
                            found = read_export(contents(entry), secret(opening).contents, milliseconds)
                            told = {"items": [as_told(item) for item in found]}
                        except Failure as failure:
                            told = {"code": failure.code}
                        self.assertEqual(told, {name: opening[name] for name in ("items", "code") if name in opening})

    def check_vault(self, file, opening):
        if opening.get("at") == "open":
            with self.assertRaises(Failure) as raised:
                read_copies(file)
            self.assertEqual(raised.exception.code, opening["code"])
            return
        state = VECTORS / opening["state"] if "state" in opening else None
        if "code" in opening:
            with self.assertRaises(Failure) as raised:
                open_vault(file, state, secret(opening))
            self.assertEqual(raised.exception.code, opening["code"], raised.exception.where)
            if "offset" in opening:
                self.assertEqual(told_offset(raised.exception.where), opening["offset"])
            return
        vault = open_vault(file, state, secret(opening))
        told = {
            "vault": vault.keybag.vault.hex(), "epoch": vault.log.epoch, "sequence": vault.log.sequence,
            "keybagGeneration": vault.keybag.generation, "slot": vault.slot.identifier,
        }
        self.assertEqual(told, {name: opening[name] for name in told})
        found, refused = self.items(file, vault, opening.get("lockedAgain", False))
        self.assertEqual(found, opening["items"])
        self.assertEqual(refused, sorted(map(self.told_refusal(vault), opening["unreadable"]), key=repr))

    def items(self, file, vault, locked):
        """The items, and what stands for those that cannot be read."""
        found, refused = [], []
        for frame in live_frames(vault.log.frames):
            policy = NAMES.get(frame.policy, frame.policy)
            keys = access(vault.keybag, vault.class_keys, vault.state, frame)
            if keys == DESTROYED:
                continue
            code, offset = keys if isinstance(keys, str) else None, None
            if locked and policy in WITHOUT_ROOT and code in (None, "notPermitted"):
                code = "locked"
            if code is None:
                try:
                    found.append(as_told(open_item(file, frame, vault.log_keys, keys, milliseconds)))
                    continue
                except Failure as failure:
                    code, offset = failure.code, frame.offset
            refused.append((frame.item, policy, frame.generation, code, offset))
        found.sort(key=lambda item: (item["service"].encode(), item["key"].encode()))
        return found, sorted(refused, key=repr)

    def told_refusal(self, vault):
        def told(one):
            if "number" in one:
                item = b"".join(number.to_bytes(8, "little") for number in one["number"])
            else:
                digest = keyed(vault.log_keys.lookup, text(one["service"]) + text(one["key"]), 16)
                item = digest[7::-1] + digest[:7:-1]
            return item, one["policy"], one["generation"], one["code"], one.get("offset")

        return told
