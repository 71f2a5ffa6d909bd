"""Vaults as vaultctl makes them: the reader finds what vaultctl finds."""

import base64
import unittest

from workshop import Workshop

PORTABLE = ["when-unlocked", "after-first-unlock"]
DEVICE = ["when-unlocked-this-device-only", "after-first-unlock-this-device-only"]
PASSCODE = "when-passcode-set-this-device-only"


class ContentsTests(unittest.TestCase):
    maxDiff = None

    def agree(self, workshop, **options):
        """Both programs tell the same; returns what the reader printed."""
        status, code, items, answer = workshop.read(**options)
        self.assertEqual((status, code, items), workshop.told(**options))
        return answer

    def test_new_vault(self):
        answer = self.agree(Workshop(self.addCleanup))
        self.assertEqual((answer["items"], answer["epoch"], answer["sequence"]), ([], 1, 0))
        self.assertEqual(answer["keybagGeneration"], 1)

    def test_details(self):
        workshop = Workshop(self.addCleanup)
        for policy in PORTABLE + DEVICE:
            workshop.store(policy, b"fake", "--policy", policy)
        details = ("--label", "Größe", "--attribute", "host=example.com", "--attribute", "empty=")
        workshop.store("details", b"fake", *details, "--expires", "2040-01-31T12:00:00Z")
        item = next(item for item in self.agree(workshop)["items"] if item["key"] == "details")
        self.assertEqual((item["label"], item["expires"]), ("Größe", "2040-01-31T12:00:00Z"))
        self.assertEqual(item["attributes"], {"host": "example.com", "empty": ""})

    def test_secrets_of_all_sizes(self):
        workshop = Workshop(self.addCleanup)
        for size in [0, 1, 7, 8, 9, 23, 24, 25, 100, 1000, 4097, (1 << 20) - 1, 1 << 20]:
            workshop.store(f"{size}", bytes(index * 7 & 255 for index in range(size)))
        workshop.store("text", "naïve\n\0".encode())
        items = {item["key"]: item for item in self.agree(workshop)["items"]}
        self.assertEqual(len(base64.b64decode(items["1048576"]["valueBase64"])), 1 << 20)
        self.assertEqual((items["0"]["value"], items["text"]["value"]), ("", "naïve\n\0"))

    def test_keys_and_services_of_any_text(self):
        workshop = Workshop(self.addCleanup)
        keys = ["é", "e\u0301", "ﬀ", "日本", "🔑", "-dash", "a b", "k" * 1024, "Z", "a", "ab"]
        for number, key in enumerate(keys):
            workshop.store(key, b"%d" % number, service="unicode")
            workshop.store(key, b"other", service="e\u0301")
        self.assertEqual(len(self.agree(workshop)["items"]), 2 * len(keys))

    def test_changed_items(self):
        workshop = Workshop(self.addCleanup)
        for key in ["a", "b", "c", "d", "e"]:
            workshop.store(key, b"first")
        workshop.store("a", b"second")
        workshop.vaultctl("rename", "b", "moved")
        workshop.vaultctl("delete", "c")
        workshop.vaultctl("set", "d", "--label", "new", "--policy", "when-unlocked")
        workshop.store("c", b"again")
        workshop.vaultctl("delete", "e")
        keys = [item["key"] for item in self.agree(workshop)["items"]]
        self.assertEqual(keys, ["a", "c", "d", "moved"])
        workshop.vaultctl("delete", "--all", "--yes")
        self.assertEqual(self.agree(workshop)["items"], [])

    def test_compacted(self):
        workshop = Workshop(self.addCleanup)
        for number in range(20):
            workshop.store(f"k{number % 5}", b"%d" % number)
        workshop.vaultctl("delete", "k3")
        before = self.agree(workshop)
        workshop.vaultctl("compact")
        after = self.agree(workshop)
        self.assertEqual(before["items"], after["items"])
        self.assertGreater(after["epoch"], before["epoch"])
        workshop.store("k3", b"new")
        workshop.vaultctl("compact")
        self.agree(workshop)

    def test_rewritten_by_deletions_of_large_values(self):
        workshop = Workshop(self.addCleanup)
        for number in range(6):
            workshop.store(f"k{number}", bytes(1 << 20))
        for number in range(5):
            workshop.vaultctl("delete", f"k{number}")
            self.agree(workshop)

    def test_copied_to_another_device(self):
        workshop = Workshop(self.addCleanup)
        for policy in PORTABLE + DEVICE:
            workshop.store(policy, b"fake", "--policy", policy)
        elsewhere = workshop.directory / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        answer = self.agree(workshop, state=elsewhere)
        self.assertEqual([item["key"] for item in answer["items"]], sorted(PORTABLE))
        self.assertEqual([one["code"] for one in answer["unreadable"]], ["wrongDevice"] * 2)
        self.assertEqual(workshop.read(state="none")[:3], workshop.read(state=elsewhere)[:3])

    def test_slots(self):
        workshop = Workshop(self.addCleanup)
        workshop.store("k", b"fake")
        second = ("--key-file", workshop.directory / "second")
        workshop.vaultctl("slot", "add", "key-file", second[1])
        self.assertEqual(self.agree(workshop)["keybagGeneration"], 2)
        self.agree(workshop, method=second)
        workshop.vaultctl("slot", "remove", "1", "--yes", method=second)
        self.assertEqual(self.agree(workshop, method=second)["keybagGeneration"], 3)
        self.assertEqual(self.agree(workshop), workshop.read()[3])
        self.assertEqual(workshop.read()[:2], (5, "wrongPassphrase"))
        workshop.vaultctl("compact", method=second)
        self.agree(workshop, method=second)

    def test_recovery_key(self):
        workshop = Workshop(self.addCleanup)
        workshop.store("k", b"fake")
        text = workshop.vaultctl("slot", "add", "recovery").decode().strip()
        forms = [text, text.lower(), text.replace("-", ""), text.replace("-", " ").replace("1", "l").replace("0", "o")]
        for form in forms:
            method = ("--passphrase-file", workshop.file("written", form.encode() + b"\nnot read"))
            self.assertEqual(len(self.agree(workshop, method=method)["items"]), 1)
        wrong = text[:13] + ("Z" if text[13] != "Z" else "Y") + text[14:]
        method = ("--passphrase-file", workshop.file("written", wrong.encode()))
        self.assertEqual(workshop.read(method=method)[:2], (5, "wrongPassphrase"))
        self.assertIn(b"group 3 of the recovery key", workshop.run("list", method=method).stderr)

    def test_scopes(self):
        workshop = Workshop(self.addCleanup)
        for policy in PORTABLE + DEVICE:
            workshop.store(policy, b"fake", "--policy", policy)
        workshop.vaultctl("slot", "add", "recovery")
        method = ("--key-file", workshop.directory / "second")
        workshop.vaultctl("slot", "add", "key-file", method[1])
        answer = self.agree(workshop, method=method)
        self.assertEqual([item["key"] for item in answer["items"]], [DEVICE[1], PORTABLE[1]][::-1])
        self.assertEqual([one["code"] for one in answer["unreadable"]], ["notPermitted"] * 2)
        everything = ("--key-file", workshop.directory / "third")
        workshop.vaultctl("slot", "add", "key-file", everything[1], "--scope", "all")
        self.assertEqual(len(self.agree(workshop, method=everything)["items"]), 4)

    def test_revoked(self):
        workshop = Workshop(self.addCleanup)
        for policy in PORTABLE + DEVICE:
            workshop.store(policy, b"fake", "--policy", policy)
        second = ("--key-file", workshop.directory / "second")
        workshop.vaultctl("slot", "add", "key-file", second[1])
        elsewhere = workshop.directory / "elsewhere"
        workshop.vaultctl("device", "enrol", state=elsewhere)
        workshop.vaultctl("store", "there", state=elsewhere, input=b"fake")
        before = self.agree(workshop)
        workshop.vaultctl("slot", "remove", "2", "--revoke")
        after = self.agree(workshop)
        self.assertEqual((before["items"], before["unreadable"]), (after["items"], after["unreadable"]))
        self.assertEqual(workshop.read(method=second)[:2], (5, "wrongPassphrase"))
        # The other device's set is wrapped under the older root; vaultctl renews it when it unlocks there.
        self.assertEqual(len(workshop.read(state=elsewhere)[2]), 3)
        self.assertEqual(len(self.agree(workshop, state=elsewhere)["items"]), 3)
        workshop.vaultctl("store", "later", state=elsewhere, input=b"fake")
        workshop.vaultctl("compact", state=elsewhere)
        self.assertEqual(len(self.agree(workshop, state=elsewhere)["items"]), 4)
        workshop.vaultctl("slot", "add", "key-file", workshop.directory / "third")
        workshop.vaultctl("slot", "remove", "3", "--revoke")
        workshop.vaultctl("slot", "add", "key-file", workshop.directory / "fourth")
        workshop.vaultctl("slot", "remove", "4", "--revoke")
        self.assertEqual(len(workshop.read(state=elsewhere)[2]), 4)
        self.agree(workshop)

    def test_devices(self):
        workshop = Workshop(self.addCleanup)
        workshop.store("here", b"fake")
        elsewhere = workshop.directory / "elsewhere"
        device = workshop.vaultctl("device", "enrol", state=elsewhere).decode().strip()
        workshop.vaultctl("store", "there", state=elsewhere, input=b"fake")
        self.assertEqual([item["key"] for item in self.agree(workshop)["items"]], ["here"])
        self.assertEqual([item["key"] for item in self.agree(workshop, state=elsewhere)["items"]], ["there"])
        workshop.vaultctl("device", "remove", device, "--yes")
        for state in [workshop.state, elsewhere]:
            self.agree(workshop, state=state)

    def test_key_files_with_and_without_newline(self):
        for ending in [b"", b"\n", b"\n\n", b"\r\n"]:
            key = Workshop(self.addCleanup).file("key", b"0123456789 fake 0123456789 fake " + ending)
            workshop = Workshop(self.addCleanup, ("--key-file", key))
            workshop.store("k", b"fake")
            self.agree(workshop)


class PassphraseTests(unittest.TestCase):
    """Few, for each look at a passphrase costs most of a second."""

    agree = ContentsTests.agree

    def test_passphrase_its_change_and_its_removal(self):
        workshop = Workshop(self.addCleanup)
        old = ("--passphrase-file", workshop.file("old", "fake e\u0301 passphrase \nsecond line".encode()))
        new = ("--passphrase-file", workshop.file("new", b"another fake passphrase"))
        workshop.vaultctl("slot", "add", "passphrase", "--new-passphrase-file", old[1])
        workshop.vaultctl("store", "p", "--policy", PASSCODE, input=b"fake", method=old)
        workshop.store("k", b"fake", "--policy", DEVICE[0])
        self.assertEqual(len(self.agree(workshop, method=old)["items"]), 2)
        # The key file's slot does not hold the passcode root.
        answer = self.agree(workshop)
        self.assertEqual(answer["unreadable"][0]["code"], "notPermitted")
        workshop.vaultctl("passphrase", "--new-passphrase-file", new[1], method=old)
        self.assertEqual(workshop.read(method=old)[:2], (5, "wrongPassphrase"))
        self.agree(workshop, method=new)
        # Without the pepper or the device key, and without any passphrase.
        elsewhere = workshop.directory / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        self.agree(workshop, method=new, state=elsewhere)
        workshop.vaultctl("slot", "remove", "2", "--yes")
        self.assertEqual(len(self.agree(workshop)["items"]), 1)
        workshop.vaultctl("compact")
        self.agree(workshop)

