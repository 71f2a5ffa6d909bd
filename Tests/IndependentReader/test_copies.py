"""Vaults that were restored, adopted or salvaged: the reader finds what vaultctl finds."""

import shutil
import unittest

from workshop import Workshop


class CopiesTests(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.workshop = Workshop(self.addCleanup)
        for number in range(4):
            self.workshop.store(f"key {number}", b"fake first")
        self.workshop.store("portable", b"fake", "--policy", "when-unlocked")
        self.copy = self.workshop.directory / "copy.vault"
        shutil.copy2(self.workshop.vault, self.copy)
        self.workshop.store("key 1", b"fake second")
        self.workshop.vaultctl("delete", "key 2")

    def agree(self, **options):
        """Both programs tell the same; returns what the reader printed."""
        status, code, items, answer = self.workshop.read(**options)
        self.assertEqual((status, code, items), self.workshop.told(**options))
        self.assertEqual((status, code), (0, None))
        return answer

    def values(self, answer):
        return {item["key"]: item["value"] for item in answer["items"]}

    def test_restored(self):
        before = self.agree()
        self.workshop.vaultctl("restore", str(self.copy), "--yes")
        restored = self.agree()
        self.assertEqual(self.values(restored)["key 2"], "fake first")
        self.assertGreater(restored["epoch"], before["epoch"])
        self.assertGreater(restored["sequence"], before["sequence"])
        self.assertGreater(restored["keybagGeneration"], before["keybagGeneration"])
        self.workshop.store("later", b"fake")
        self.assertEqual(len(self.agree()["items"]), 6)
        # The replaced file is now an older life of the vault.
        replaced = self.workshop.directory / "a.vault.replaced"
        self.assertEqual(self.workshop.read(vault=replaced)[:2], (7, "rolledBack"))
        self.assertEqual(self.values(self.workshop.read(vault=replaced, state="none")[3])["portable"], "fake")

    def test_adopted(self):
        self.workshop.vaultctl("adopt", "--yes", vault=self.copy)
        self.assertEqual(self.values(self.agree(vault=self.copy))["key 1"], "fake first")

    def test_salvaged(self):
        out = self.workshop.directory / "out.vault"
        whole = self.values(self.agree())
        contents = bytearray(self.workshop.vault.read_bytes())
        place = contents.index(b"TVF1", contents.index(b"TVF1", 16_897) + 1)
        contents[place + 30] ^= 1
        self.workshop.vault.write_bytes(contents)
        done = self.workshop.run("salvage", str(out))
        self.assertEqual(done.returncode, 7, done.stderr)
        self.workshop.vaultctl("restore", str(out), "--yes")
        saved = self.values(self.agree())
        self.assertEqual(len(saved), len(whole) - 1)
        self.assertLessEqual(saved.items(), whole.items())


if __name__ == "__main__":
    unittest.main()
