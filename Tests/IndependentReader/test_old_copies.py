"""Older copies of a vault, and anchors, device keys and paths that are not as they were left."""

from moments import EVERY_BYTE, LOG, Moment, MomentsTests


class OldCopiesTests(MomentsTests):
    def test_older_copies(self):
        for number, moment in enumerate(self.moments):
            self.with_and_without_anchor(f"copy of moment {number}", moment.vault)
            self.compare(f"anchor of moment {number}", self.last.vault, moment.state)
        self.saw(None, "rolledBack")

    def test_both_slots_of_the_anchor(self):
        name = next(name for name in self.last.state if name.endswith(".anchor"))
        for place in [0, 7, 16, 40, 60, 100, 119, 120, 300, 511]:
            slots = bytearray(self.last.state[name])
            for start in (0, 512):
                slots[start + place] ^= 1
            # Without a whole slot nothing is known, so an older copy opens.
            self.compare(f"byte {place}", self.moments[6].vault, self.last.state | {name: bytes(slots)})
        self.assertEqual(self.verdicts, {None})

    def test_copies_of_another_epoch(self):
        self.verdict(self.last.vault, self.last.state)
        self.workshop.file("a.vault", self.last.vault)
        self.workshop.vaultctl("compact")
        compacted = Moment(self.workshop)
        self.workshop.store("portable", b"fake five", "--policy", "when-unlocked")
        stored = Moment(self.workshop)
        for name, moment in {"last": self.last, "compacted": compacted, "stored": stored}.items():
            for other, state in {"last": self.last.state, "compacted": compacted.state, "stored": stored.state}.items():
                self.compare(f"vault {name}, anchor {other}", moment.vault, state)
        for place in range(LOG, compacted.end, 1 if EVERY_BYTE else 83):
            damaged = bytearray(compacted.vault)
            damaged[place] ^= 1 << place % 8
            for state in [compacted.state, compacted.without_anchor]:
                self.compare(f"byte {place} of the compacted file", bytes(damaged), state)
        self.saw(None, "corrupt", "rolledBack")

    def test_damaged_state(self):
        for name, contents in self.last.state.items():
            for place in range(0, min(len(contents), 700), 1 if EVERY_BYTE else 11):
                damaged = bytearray(contents)
                damaged[place] ^= 1 << place % 8
                for number in [6, len(self.moments) - 1]:
                    what = f"byte {place} of {name[33:]}, vault of moment {number}"
                    self.compare(what, self.moments[number].vault, self.last.state | {name: bytes(damaged)})
            for length in [0, 8, 71, 119, 120, 512, 1023]:
                state = self.last.state | {name: contents[:length]}
                self.compare(f"{name[33:]} of {length} bytes", self.last.vault, state)
        self.saw(None, "rolledBack")
