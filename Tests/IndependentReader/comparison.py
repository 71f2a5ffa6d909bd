"""Puts a vault and its state in place and compares what the two programs make of them."""

import unittest

from failure import Failure
from keybag import KEY_FILE
from keys import Secret
from read_vault import exit_status, read_vault


class ComparisonTests(unittest.TestCase):
    """Needs `workshop`, whose vault a key file opens."""

    maxDiff = None

    def setUp(self):
        self.differences, self.verdicts = [], set()

    def tearDown(self):
        self.assertEqual(self.differences[:10], [], f"{len(self.differences)} verdicts differ")

    @property
    def secret(self):
        return Secret(KEY_FILE, self.workshop.method[1].read_bytes().removesuffix(b"\n"))

    def verdict(self, vault, state):
        """What the reader says, within this process: exit status, code or None, items."""
        for path in self.workshop.state.iterdir():
            path.unlink()
        for name, contents in state.items():
            self.workshop.file(f"state/{name}", contents)
        try:
            answer = read_vault(vault, self.workshop.state, self.secret)
        except Failure as failure:
            answer = {"code": failure.code}
        self.verdicts.add(answer.get("code"))
        return exit_status(answer), answer.get("code"), answer.get("items")

    def saw(self, *codes):
        """Fails unless each of these verdicts was among those given: agreement on one alone shows little."""
        self.assertLessEqual(set(codes), self.verdicts)

    def compare(self, what, vault, state):
        """Notes a difference between the two. vaultctl comes last: it may mend what it finds."""
        read = self.verdict(vault, state)
        self.workshop.file("a.vault", vault)
        told = self.workshop.told()
        if read != told:
            self.differences.append((what, read, told))
        return read
