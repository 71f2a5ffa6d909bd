"""The moments in the life of a small vault that the tests of damage and of old copies work on."""

import os
import struct

from comparison import ComparisonTests
from workshop import Workshop

KEYBAG, LOG = 8192, 16896
# vaultctl on every byte takes minutes, so this runs only with READER_EVERY_BYTE=1.
EVERY_BYTE = bool(os.environ.get("READER_EVERY_BYTE"))


class Moment:
    """The bytes of a vault and of its state directory at one moment."""

    def __init__(self, workshop):
        self.vault = workshop.vault.read_bytes()
        self.state = {path.name: path.read_bytes() for path in workshop.state.iterdir()}
        self.without_anchor = {name: part for name, part in self.state.items() if not name.endswith(".anchor")}
        self.frames, offset = [], LOG  # by their prefixes
        while self.vault[offset : offset + 4] == b"TVF1":
            length = struct.unpack("<I", self.vault[offset + 4 : offset + 8])[0]
            self.frames.append((offset, offset + length))
            offset += length
        self.end = offset


class MomentsTests(ComparisonTests):
    """Works on the `moments` of one vault, oldest first; `last` is the last."""

    @classmethod
    def setUpClass(cls):
        cls.workshop = workshop = Workshop(cls.addClassCleanup)
        cls.moments = [Moment(workshop)]
        for step in [
            lambda: workshop.store("gone", b"fake zero"),
            lambda: workshop.vaultctl("delete", "gone"),  # rewrites a vault of this size
            lambda: workshop.store("portable", b"fake one", "--policy", "when-unlocked"),
            lambda: workshop.vaultctl("slot", "add", "key-file", workshop.directory / "second"),
            lambda: workshop.store("device", b"fake two" * 100),
            lambda: workshop.store("portable", b"fake three", "--policy", "when-unlocked"),
            lambda: workshop.vaultctl("slot", "remove", "2"),
            lambda: workshop.vaultctl("slot", "add", "key-file", workshop.directory / "third"),
            lambda: workshop.store("other", b"fake four" * 100, "--label", "other"),
        ]:
            step()
            cls.moments.append(Moment(workshop))
        cls.last = cls.moments[-1]

    def compare(self, what, vault, state=None):
        super().compare(what, vault, self.last.state if state is None else state)

    def with_and_without_anchor(self, what, vault):
        self.compare(what, vault)
        self.compare(f"{what}, no anchor", vault, self.last.without_anchor)
