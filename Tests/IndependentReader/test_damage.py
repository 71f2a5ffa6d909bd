"""Damaged vaults: the reader and vaultctl give the same verdict, and the same items when there are any."""

from failure import Failure
from keybag import read_copies
from moments import EVERY_BYTE, KEYBAG, LOG, MomentsTests
from workshop import Workshop


class DamageTests(MomentsTests):
    # Keybag

    def test_flips_in_the_keybag(self):
        vault = self.last.vault
        whole = read_copies(vault)
        used = len(vault[: KEYBAG - 32].rstrip(b"\0"))
        for place in range(KEYBAG):
            told = EVERY_BYTE or place % (64 if place < used else 1024) == place // 64 % 64
            for copies, verdict in [((0,), whole), ((1,), whole), ((0, 1), "corrupt" if place > 7 else "notAVault")]:
                damaged = bytearray(vault[:LOG])
                for copy in copies:
                    damaged[copy * KEYBAG + place] ^= 1 << place % 8
                what = f"bit {place % 8} of byte {place} of copies {copies}"
                self.assertEqual(self.parsed(bytes(damaged)), verdict, what)
                if told:
                    self.compare(what, bytes(damaged) + vault[LOG:])
        self.saw(None, "corrupt")

    @staticmethod
    def parsed(file):
        try:
            return read_copies(file)
        except Failure as failure:
            return failure.code

    def test_both_copies_without_their_first_bytes(self):
        for first in [b"TKNVAULX", bytes(8)]:
            self.compare(first, first + self.last.vault[8:KEYBAG] + first + self.last.vault[KEYBAG + 8 :])
        self.saw("notAVault")

    def test_keybags_of_other_moments(self):
        bags = {moment.vault[:KEYBAG]: number for number, moment in enumerate(self.moments)}
        self.assertEqual(len(bags), 4)
        for first, a in bags.items():
            for second, b in bags.items():
                for number in bags.values():
                    moment = self.moments[number]
                    vault = first + second + moment.vault[2 * KEYBAG :]
                    what = f"keybags of {a} and {b} before the log of {number}"
                    self.compare(what, vault, moment.state)
                    self.compare(f"{what}, no anchor", vault, moment.without_anchor)
        self.saw(None, "rolledBack", "corrupt")

    def test_keybag_of_another_vault(self):
        other = Workshop(self.addCleanup, self.workshop.method).vault.read_bytes()
        # A device that remembers the vault's path would report another vault first.
        nowhere = {name: contents for name, contents in self.last.state.items() if not name.endswith(".path")}
        self.compare("both copies", other[:LOG] + self.last.vault[LOG:], nowhere)
        self.compare("first copy", other[:KEYBAG] + self.last.vault[KEYBAG:])
        self.compare("second copy", self.last.vault[:KEYBAG] + other[:KEYBAG] + self.last.vault[LOG:])
        self.saw(None, "corrupt")

    # Log

    def test_flips_in_the_log(self):
        for place in range(LOG, self.last.end, 1 if EVERY_BYTE else 61):
            damaged = bytearray(self.last.vault)
            damaged[place] ^= 1 << place % 8
            self.with_and_without_anchor(f"byte {place}", bytes(damaged))
        self.saw(None, "corrupt")

    def test_flips_at_the_edges_of_frames(self):
        for start, end in self.last.frames:
            front = [start + place for place in (0, 4, 7, 8, 31, 32, 175, 176, 191, 192)]
            for place in front + [end - 33, end - 32, end - 17, end - 16, end - 1]:
                damaged = bytearray(self.last.vault)
                damaged[place] ^= 0x80
                self.with_and_without_anchor(f"byte {place} of the frame at {start}", bytes(damaged))
        self.saw(None, "corrupt")

    def test_truncations(self):
        lengths = {0, 1, 7, 8, 100, KEYBAG - 1, KEYBAG, KEYBAG + 1, LOG - 1, LOG, LOG + 1, len(self.last.vault) - 1}
        for start, end in self.last.frames:
            lengths |= {start + 4, start + 100, start + 191, start + 192, end - 33, end - 16, end - 1, end}
        lengths |= {self.last.end + 1, self.last.end + 8, self.last.end + 512}
        for length in sorted(lengths):
            self.with_and_without_anchor(f"{length} bytes", self.last.vault[:length])
        self.saw(None, "corrupt", "notAVault", "rolledBack")

    def test_zeroed_from_a_byte_on(self):
        for start, end in self.last.frames:
            for place in [start, start + 4, start + 100, start + 192, end - 33, end - 16, end - 1]:
                vault = self.last.vault[:place].ljust(len(self.last.vault), b"\0")
                self.with_and_without_anchor(f"zeros from {place}", vault)
        self.saw(None, "corrupt", "rolledBack")

    def test_zeroed_sectors(self):
        for start in range(0, self.last.end, 512):
            vault = self.last.vault[:start] + bytes(512) + self.last.vault[start + 512 :]
            self.with_and_without_anchor(f"sector at {start}", vault)
        self.saw(None, "corrupt")

    def test_zeroed_pieces_of_frames(self):
        for start, end in self.last.frames:
            contents, tail = start + 192, end - 32
            pieces = [(start, end), (start, start + 4), (start, start + 8), (start, contents), (contents, tail)]
            for first, last in pieces + [(tail, end), (end - 16, end)]:
                vault = self.last.vault[:first] + bytes(last - first) + self.last.vault[last:]
                self.with_and_without_anchor(f"{first} to {last}", vault)
        self.saw(None, "corrupt", "rolledBack")

    def test_bytes_behind_the_end(self):
        for distance in [0, 1, 8, 176, 191, 192, 500, 512, 4096, 65536, 100_000]:
            for stray in [b"\1", b"TVF1", b"TVF1\xf8\0\0\0", b"x" * 200, b"x" * 5000]:
                vault = bytes(self.last.vault[: self.last.end + distance] + stray).ljust(len(self.last.vault), b"\0")
                self.with_and_without_anchor(f"{stray[:8]} {distance} bytes behind the end", vault)
        self.saw(None, "corrupt")

    def test_swapped_repeated_and_missing_frames(self):
        pieces = [self.last.vault[start:end] for start, end in self.last.frames]
        zeros = self.last.vault[self.last.end :]
        for index in range(len(pieces)):
            without = pieces[:index] + pieces[index + 1 :]
            repeated = pieces[: index + 1] + pieces[index:]
            swapped = pieces[:index] + pieces[index : index + 2][::-1] + pieces[index + 2 :]
            for name, frames in [("without", without), ("repeated", repeated), ("swapped", swapped)]:
                vault = self.last.vault[:LOG] + b"".join(frames) + zeros
                self.with_and_without_anchor(f"{name} {index}", vault)
        for index, piece in enumerate(pieces):
            self.with_and_without_anchor(f"{index} again", self.last.vault[: self.last.end] + piece + zeros)
        self.saw(None, "corrupt", "rolledBack")
