"""Frames, one behind the other."""

import struct
from dataclasses import dataclass

from primitives import associated, derive, digest, keyed

from writer.fields import Fields, text, u32, u64, u8

START = 16896
GENESIS, ITEM, DELETION, KEYBAG, CHECKPOINT, SUPERSEDED, ANCESTRY, INDEX_PAGES, INDEX = 1, 2, 3, 4, 5, 6, 7, 128, 129
FRONT, TAIL = 192, 32


@dataclass(frozen=True)
class Written:
    """A frame as it was written."""

    offset: int
    type: int
    generation: int
    group: int
    item: tuple  # the two u64
    policy: int
    version: int
    service_tag: int
    set_tag: int
    metadata: int
    body: int
    chain: bytes
    stored_by: int = 0
    value_tag: int = 0

    @property
    def length(self):
        return FRONT + self.metadata + self.body + TAIL

    @property
    def end(self):
        return self.offset + self.length


class Log:
    def __init__(self, source, vault, log_key):
        self.source, self.vault = source, vault
        names = ("frame header", "control record", "chain", "lookup", "service", "anchor", "index")
        self.keys = {name: derive(log_key, f"tokenvault 1 {name}") for name in names}
        self.history = []  # sequence and tag of every commit, of this epoch and of earlier ones
        self.begin(1, source.bytes(16), 0)

    def begin(self, epoch, identifier, base):
        """A log without frames, of this epoch."""
        self.epoch, self.identifier, self.base, self.sequence = epoch, identifier, base, base
        self.data, self.frames, self.chain, self.group = bytearray(), [], bytes(32), START

    @property
    def end(self):
        return START + len(self.data)

    def next_group(self):
        self.group = self.end

    def name(self, service, key):
        """An item's two numbers and its service's tag."""
        item = struct.unpack(">QQ", keyed(self.keys["lookup"], text(service) + text(key), 16))
        plain = service.encode()
        return item, int.from_bytes(keyed(self.keys["service"], plain, 16)[:8], "big")

    def ancestry(self, history, in_part=(), left=()):
        """Appends the record of the commits that the log descends from. `in_part` has commits, and `left` the names of
        items with commits, of copies that were merged without these values."""
        commits = lambda some: b"".join(u64(sequence) + tag for sequence, tag in some)
        plain = u32(len(history)) + u32(2 if in_part or left else 0) + commits(history)
        if in_part or left:
            plain += u32(len(in_part)) + u32(len(left)) + commits(in_part)
            plain += b"".join(u64(high) + u64(low) + tag for (high, low), tag in sorted(left))
        self.frame(ANCESTRY, self.base, body=self.control(ANCESTRY, self.base, plain))

    def control(self, type_, generation, plain):
        """The sealed body of a control record."""
        plain = plain.ljust(len(plain) + 7 & ~7, b"\0")
        data = associated("tokenvault 1 control record", self.vault, u8(type_), u64(generation))
        return self.source.seal(self.keys["control record"], plain, data)

    def frame(
        self,
        type_,
        generation,
        metadata=b"",
        body=b"",
        ends=True,
        policy=0,
        version=0,
        item=(0, 0),
        service_tag=0,
        set_tag=0,
        stored_by=0,
        value_tag=0,
        header=None,
    ):
        """Appends a frame. `header` replaces fields of its header."""
        contents = metadata + body
        header = Fields({name.replace("_", " "): value for name, value in (header or {}).items()})
        header.integer("type", "B", type_)
        header.integer("ends", "B", ends)
        header.integer("policy", "B", policy)
        header.integer("zero", "B", 0)
        header.integer("version", "I", version)
        header.integer("generation", "Q", generation)
        header.integer("group", "Q", self.group)
        header.integer("stored by", "Q", stored_by)
        header.add("previous", self.chain)
        header.add("item", struct.pack("<QQ", *item))
        header.integer("service tag", "Q", service_tag)
        header.integer("set tag", "Q", set_tag)
        header.integer("m", "I", len(metadata))
        header.integer("b", "I", len(body))
        header.add("digest", digest(contents))
        header.integer("value tag", "Q", value_tag)
        sealed = header.finish()
        sealed = self.source.seal(
            self.keys["frame header"], sealed, associated("tokenvault 1 frame header", self.vault)
        )
        prefix = b"TVF1" + struct.pack("<I", FRONT + len(contents) + TAIL)
        prefix += sealed
        behind = digest(contents)[:16] + digest(prefix, 16)
        self.chain = keyed(self.keys["chain"], prefix)
        frame = Written(
            self.end,
            type_,
            generation,
            self.group,
            item,
            policy,
            version,
            service_tag,
            set_tag,
            len(metadata),
            len(body),
            self.chain,
            stored_by,
            value_tag,
        )
        self.data += prefix + contents + behind
        self.frames.append(frame)
        if ends and self.group > START and type_ != SUPERSEDED:
            self.history.append((generation, self.chain[:8]))
        self.sequence = max(self.sequence, generation)
        return frame
