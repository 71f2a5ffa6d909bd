"""One frame: its prefix and header, and whether its contents are what the header says."""

import struct
from dataclasses import dataclass

from failure import Failure
from primitives import associated, derive, digest, keyed, unseal

GENESIS, ITEM, DELETION, KEYBAG, CHECKPOINT, SUPERSEDED, ANCESTRY = range(1, 8)
INDEX_PAGES, INDEX = 128, 129
MAGIC = b"TVF1"
FRONT = 192  # prefix and header
TAIL = 32
LONGEST_METADATA = 256 << 10
LONGEST_BODY = 1_400_000
LONGEST = FRONT + LONGEST_METADATA + LONGEST_BODY + TAIL


class LogKeys:
    def __init__(self, vault, log_key):
        self.vault = vault
        names = ("frame header", "control record", "chain", "lookup", "service", "anchor", "index")
        self.header, self.control, self.chain, self.lookup, self.service, self.anchor, self.index = (
            derive(log_key, f"tokenvault 1 {name}") for name in names
        )


@dataclass(frozen=True)
class Frame:
    offset: int
    type: int
    ends_commit: int
    policy: int
    version: int
    generation: int
    group_start: int
    previous: bytes
    item: bytes  # the two u64 of the header
    service_tag: int
    set_tag: int
    metadata_length: int
    body_length: int
    content_digest: bytes
    chain: bytes
    stored_by: int = 0  # the tag of a commit, where a merge wrote the frame
    value_tag: int = 0

    @property
    def length(self):
        return FRONT + self.metadata_length + self.body_length + TAIL

    @property
    def end(self):
        return self.offset + self.length

    def metadata(self, file):
        return file[self.offset + FRONT :][: self.metadata_length]

    def body(self, file):
        return file[self.offset + FRONT + self.metadata_length :][: self.body_length]

    def contents_fit(self, file):
        contents = file[self.offset + FRONT : self.end - TAIL]
        tail = file[self.end - TAIL : self.end]
        front = file[self.offset : self.offset + FRONT]
        return digest(contents) == self.content_digest and tail == self.content_digest[:16] + digest(front, 16)


def length_in_prefix(file, offset):
    """What the prefix at the offset says of the frame's length, or None when it is none."""
    if file[offset : offset + 4] != MAGIC or offset + 8 > len(file):
        return None
    length = struct.unpack("<I", file[offset + 4 : offset + 8])[0]
    return length if length % 8 == 0 and FRONT + TAIL <= length <= LONGEST else None


def authentic(file, offset, keys):
    """The frame whose header opens at the offset, wherever its end may be; else None."""
    front = file[offset : offset + FRONT]
    if len(front) < FRONT:
        return None
    header = unseal(keys.header, front[8:], associated("tokenvault 1 frame header", keys.vault))
    if header is None:
        return None
    type_, ends, policy, zero, version, generation, group, stored_by = struct.unpack("<BBBBIQQQ", header[:32])
    previous, item = header[32:64], header[64:80]
    service_tag, set_tag, metadata, body = struct.unpack("<QQII", header[80:104])
    value_tag = int.from_bytes(header[136:144], "little")
    if zero or (stored_by or value_tag) and type_ != ITEM or ends > 1 or generation >= 1 << 53 or metadata > LONGEST_METADATA or body > LONGEST_BODY:
        raise Failure("unsupportedFormat", f"log: header at {offset}")
    return Frame(
        offset, type_, ends, policy, version, generation, group, previous, item,
        service_tag, set_tag, metadata, body, header[104:136], keyed(keys.chain, front), stored_by,
        value_tag,
    )


def whole(file, offset, keys):
    """The frame at the offset when prefix, header and lengths check; else None."""
    length = length_in_prefix(file, offset)
    if length is None:
        return None
    frame = authentic(file, offset, keys)
    return frame if frame is not None and frame.length == length else None
