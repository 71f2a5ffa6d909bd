"""Vaults that are large enough for an index block: it says what the log says."""

import json
import unittest

from frames import INDEX
from index import check_indexes, pointed
from keybag import KEY_FILE
from keys import Secret
from read_vault import open_vault
from workshop import Workshop


class IndexTests(unittest.TestCase):
    def opened(self, workshop):
        file = workshop.vault.read_bytes()
        secret = Secret(KEY_FILE, workshop.method[1].read_bytes().removesuffix(b"\n"))
        return file, open_vault(file, workshop.state, secret)

    def fill(self, workshop, numbers, value):
        lines = [json.dumps({"key": f"key {number}", "value": f"{value} {number}"}) for number in numbers]
        path = workshop.file("lines", "\n".join(lines).encode())
        workshop.vaultctl("import", "--format", "ndjson", "--on-conflict", "replace", path)

    def test_small_vaults_have_none(self):
        workshop = Workshop(self.addCleanup)
        workshop.store("k", b"fake")
        file, vault = self.opened(workshop)
        self.assertEqual((pointed(file), check_indexes(file, vault.log, vault.log_keys)), (None, 0))

    def test_written_by_commits_and_by_compaction(self):
        workshop = Workshop(self.addCleanup)
        self.fill(workshop, range(1200), "first")
        self.fill(workshop, range(600, 1700), "second")
        workshop.vaultctl("delete", "key 7")
        file, vault = self.opened(workshop)
        self.assertEqual(check_indexes(file, vault.log, vault.log_keys), 2)
        indexes = [frame.offset for frame in vault.log.frames if frame.type == INDEX]
        self.assertEqual(pointed(file), indexes[-1])
        self.assertEqual(len(workshop.read()[2]), 1699)
        workshop.vaultctl("compact")
        file, vault = self.opened(workshop)
        self.assertEqual(check_indexes(file, vault.log, vault.log_keys), 1)
        self.assertEqual(workshop.vaultctl("retrieve", "key 1000"), b"second 1000")
        self.assertEqual(workshop.vaultctl("retrieve", "key 8"), b"first 8")
        self.assertEqual(workshop.run("retrieve", "key 7").returncode, 3)
        self.assertEqual(workshop.run("verify").returncode, 0)
