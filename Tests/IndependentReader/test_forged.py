"""Authentic frames and keybags that no writer makes: both programs draw the same line."""

import struct

from comparison import ComparisonTests
from forger import Forger, with_keybags
from items import open_metadata
from workshop import Workshop


class ForgedTests(ComparisonTests):
    def setUp(self):
        super().setUp()
        self.workshop = Workshop(self.addCleanup)
        self.workshop.store("k", b"fake", "--policy", "when-unlocked")
        self.vault = self.workshop.vault.read_bytes()
        self.state = {path.name: path.read_bytes() for path in self.workshop.state.iterdir()}
        self.forger = Forger(self.vault, self.workshop.state, self.secret)

    def expect(self, code, what, vault):
        self.assertEqual(self.compare(what, vault, self.state)[1], code, what)

    def item(self, key="new", metadata=None, body=None, zero=0, stored_by=0, **changes):
        forger = self.forger
        frame = forger.item("default", key, **changes)
        metadata = forger.metadata("default", key) if metadata is None else metadata
        body = forger.body(b"fake two") if body is None else body
        return forger.append(frame, *forger.sealed(frame, metadata, body), zero=zero, stored_by=stored_by)

    def test_well_formed(self):
        self.expect(None, "an item", self.item())
        self.assertEqual([item["key"] for item in self.workshop.told()[2]], ["k", "new"])
        self.expect(None, "an item that names the commit that stored it", self.item(stored_by=1 << 63))
        self.expect(None, "a newer value", self.item(key="k"))
        self.assertEqual([item["value"] for item in self.workshop.told()[2]], ["fake two"])

    def test_types(self):
        forger = self.forger
        for number in [0, 8, 127, 128, 255]:
            code = "unsupportedFormat" if number < 128 else None
            self.expect(code, f"type {number}", forger.append(forger.item("default", "k", type=number)))
        self.expect(None, "uncommitted type 8", forger.append(forger.item("default", "k", type=8, ends_commit=0)))

    def test_headers(self):
        for changes in [{"ends_commit": 2}, {"zero": 1}, {"generation": 1 << 53}]:
            self.expect("unsupportedFormat", f"{changes}", self.item(**changes))
        self.expect("corrupt", "another chain", self.item(previous=bytes(32)))
        self.expect(None, "no end of the commit", self.item(ends_commit=0))

    def test_two_frames_in_one_commit(self):
        first = self.item("first", ends_commit=0)
        start = self.forger.last.end
        group = Forger(first, self.workshop.state, self.secret, commits=False)
        frame = group.item("default", "second", group_start=start)
        contents = group.sealed(frame, group.metadata("default", "second"), group.body(b"fake" * 200))
        vault, middle = group.append(frame, *contents), group.last.end
        self.expect(None, "whole", vault)
        self.assertEqual(len(self.workshop.told()[2]), 3)
        end = middle + 192 + len(b"".join(contents)) + 32
        for place in range(start, end, 24):
            self.compare(f"byte {place}", vault[:place] + bytes([vault[place] ^ 4]) + vault[place + 1 :], self.state)
            self.compare(f"cut at {place}", vault[:place].ljust(len(vault), b"\0"), self.state)
            self.compare(f"zeros to {place}", vault[:start] + bytes(place - start) + vault[place:], self.state)
        self.saw(None, "corrupt")

    def test_deletions(self):
        forger = self.forger
        frame = forger.item("default", "k", type=3)
        for metadata in [b"", bytes(48), forger.sealed(frame, forger.metadata("default", "k"), None)[0]]:
            self.expect(None, f"{len(metadata)} bytes", forger.append(frame, metadata))
            self.assertEqual(self.workshop.told()[2], [])

    def test_deletion_as_a_writer_makes_it(self):
        self.workshop.store("large", bytes(1 << 20))  # otherwise the file would be rewritten without the deletion
        self.workshop.vaultctl("set", "k", "--label", "label", "--expires", "30d")
        self.workshop.vaultctl("rename", "k", "moved")
        vault = self.workshop.vault.read_bytes()
        opened = Forger(vault, self.workshop.state, self.secret).opened
        deletion = next(frame for frame in opened.log.frames if frame.type == 3)
        key = opened.class_keys[0, 1, 1].metadata
        names, details, _ = open_metadata(vault, deletion, key, opened.keybag.vault, "deletion")
        self.assertEqual((names, set(details)), (("default", "k"), {"policy", "created", "modified"}))

    def test_contents(self):
        forger = self.forger
        frame = forger.item("default", "new")
        for metadata, body in [(bytes(48), bytes(48)), forger.sealed(frame, b"", b"")]:
            self.expect("corrupt", "contents", forger.append(frame, metadata, body))
        self.expect("corrupt", "too long a secret", self.item(body=struct.pack("<Q", 9) + bytes(8)))
        self.expect("corrupt", "too long a text", self.item(metadata=bytes([12, 0, 0, 0, 9]) + bytes(59)))

    def test_control_records(self):
        forger = self.forger
        keybag = self.forger.opened.keybag
        for what, code, number, checksum in [
            ("the keybag in use", None, keybag.generation, keybag.checksum),
            ("another keybag", "corrupt", keybag.generation, bytes(32)),
            ("the next keybag", "corrupt", keybag.generation + 1, bytes(32)),
            ("the keybag before", "corrupt", keybag.generation - 1, bytes(32)),
            ("the largest number", "corrupt", (1 << 53) - 1, bytes(32)),
            ("a number out of bounds", "corrupt", 1 << 53, bytes(32)),
            ("the largest number of its size", "corrupt", (1 << 64) - 1, bytes(32)),
        ]:
            frame = forger.item("", "", type=4, policy=0, version=0, item=bytes(16), service_tag=0)
            state = {} if number < keybag.generation else self.state
            vault = forger.append(frame, *forger.control(frame, struct.pack("<Q", number) + checksum))
            self.assertEqual(self.compare(what, vault, state)[1], code, what)
        self.expect("corrupt", "unsealed", forger.append(frame, b"", bytes(80)))

    def test_anchors(self):
        log = self.forger.opened.log
        earlier, later = {"epoch": log.epoch - 1}, {"epoch": log.epoch + 1}
        for code, changes in [
            (None, {}),
            (None, {"chain": log.frames[0].chain, "sequence": 0}),
            ("forked", {"chain": bytes(32)}),
            ("forked", {"epoch_identifier": bytes(16)}),
            ("rolledBack", {"keybag_generation": log.keybag_generation + 1}),
            ("rolledBack", later),
            ("forked", earlier | {"chain": bytes(32)}),
            ("forked", earlier | {"sequence": log.sequence + 1}),
            ("forked", earlier | {"keybag_generation": log.keybag_generation + 1}),
            (None, later | {"counter": 1 << 53}),
            (None, later | {"sequence": 1 << 53}),
            (None, {"keybag_generation": (1 << 64) - 1}),
            (None, {"epoch": 1 << 53}),
            ("forked", {"root": b"1" * 16}),
            ("forked", {"holder": b"1" * 16}),
            (None, {"coming_root": b"1" * 16, "coming_holder": b"1" * 16}),
        ]:
            state = {name: self.forger.anchor(**changes) if name.endswith(".anchor") else contents
                     for name, contents in self.state.items()}
            self.assertEqual(self.compare(f"{changes}", self.vault, state)[1], code, changes)

    def test_keybags(self):
        slot, vault = 46, self.vault
        for what, code, place, contents in [
            ("nothing", None, 0, b"TKNVAULT"),
            ("magic", "notAVault", 0, b"TKNVAULU"),
            ("version", "unsupportedFormat", 8, b"\2"),
            ("kept values", "corrupt", 10, b"\1"),
            ("101 kept values", "unsupportedFormat", 10, b"\x65"),
            ("a removed device more than there are", "corrupt", 12, b"\1"),
            ("a former root more than there are", "corrupt", 14, b"\1"),
            ("9 former roots", "unsupportedFormat", 14, b"\x09"),
            ("17 removed devices", "unsupportedFormat", 12, b"\x11"),
            ("generation", "corrupt", 32, b"\2"),
            ("next slot", "corrupt", 40, b"\1"),
            ("next slot, above", "corrupt", 40, b"\7"),
            ("no slots", "corrupt", 44, b"\0"),
            ("17 slots", "corrupt", 44, b"\x11"),
            ("kind", "unsupportedFormat", slot + 4, b"\5"),
            ("scope", "unsupportedFormat", slot + 5, b"\3"),
            ("a key file with passes", "corrupt", slot + 14, b"\1"),
            ("a key file with memory", "corrupt", slot + 18, b"\1"),
            ("a passphrase without cost", "corrupt", slot + 4, b"\1"),
            ("salt", "wrongPassphrase", slot + 26, b"12345678"),
            ("commitment", "wrongPassphrase", slot + 42, b"12345678"),
            ("roots too long", "corrupt", slot + 74, b"\x69"),
            ("roots", "corrupt", slot + 76, b"12345678"),
            ("no class sets", "corrupt", slot + 148, b"\0"),
            ("9 class sets", "corrupt", slot + 148, b"\x09"),
            ("older roots of the portable set", "corrupt", slot + 174, b"\1"),
            ("older roots of a newer kind", "unsupportedFormat", slot + 174, b"\3"),
            ("a class", "corrupt", slot + 185, b"12345678"),
            ("zeros", "corrupt", 8159, b"\1"),
        ]:
            self.expect(code, what, with_keybags(vault, place, contents))
