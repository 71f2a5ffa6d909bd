"""The index block: what it says, held against the walk along the log in front of it."""

import struct
from dataclasses import dataclass

from cursor import Cursor
from failure import corrupt
from frames import DELETION, FRONT, INDEX, INDEX_PAGES, ITEM, TAIL
from primitives import associated, digest, unseal

POINTER = 16384
PAGE, PER_PAGE, PAGES_A_FRAME, LINE = 4096, 56, 320, 72
# The role of a value for its item.
NEWEST, REPLACED, DELETED = 1, 2, 3


@dataclass(frozen=True)
class Record:
    """A line of the index: a value's place and what its header says."""

    item: bytes
    offset: int
    generation: int
    service_tag: int
    set_tag: int
    version: int
    metadata_length: int
    body_length: int
    policy: int
    kind: int
    value_tag: int

    @property
    def newest(self):
        """Whether it is the item's last value."""
        return self.kind == NEWEST


@dataclass(frozen=True)
class Index:
    start: int
    sequence: int
    keybag_generation: int
    keybag_checksum: bytes
    live_bytes: int
    classes: dict  # by policy, version and set tag: the number of live items
    records: list


def pointed(file):
    """Where the pointer leads, or None when there is none."""
    sector = file[POINTER : POINTER + 512]
    if not any(sector):
        return None
    if sector[:8] != b"TVINDEX1" or sector[16:32] != digest(sector[:16], 16) or any(sector[32:]):
        raise corrupt("pointer")
    return struct.unpack("<Q", sector[8:16])[0]


def read_index(file, log, keys, frame):
    """The index whose last frame this is."""
    where = f"index at {frame.offset}"
    epoch = log.epoch.to_bytes(8, "little"), log.epoch_identifier
    place = frame.offset.to_bytes(8, "little")
    plain = unseal(keys.index, frame.body(file), associated("tokenvault 1 index summary", keys.vault, *epoch, place))
    if plain is None:
        raise corrupt(where)
    cursor = Cursor(plain, where)
    identifier = cursor.bytes(16)
    start, sequence, keybag_generation = cursor.integers("QQQ")
    if max(sequence, keybag_generation) >= 1 << 53:
        raise corrupt(where)
    keybag_checksum = cursor.bytes(32)
    count, live_bytes = cursor.integers("QQ")
    class_count, page_count = cursor.integers("II")
    classes = {}
    for _ in range(class_count):
        policy, zeros, version, set_tag, items = cursor.integers("B3sIQQ")
        if any(zeros):
            raise corrupt(where)
        classes[policy, version, set_tag] = items
    firsts = [cursor.integer("Q") for _ in range(page_count)]
    if cursor.position != len(plain) or page_count != -(-count // PER_PAGE):
        raise corrupt(where)
    records = []
    for number in range(page_count):
        plain = _page(file, keys, identifier, start, number)
        of_page = [
            _record(plain[at : at + LINE], where)
            for at in range(0, LINE * min(PER_PAGE, count - len(records)), LINE)
        ]
        if _order(of_page[0])[0] != firsts[number] or any(plain[LINE * len(of_page) :]):
            raise corrupt(f"{where}: page {number}")
        records += of_page
    if start + _length(page_count) != frame.offset or records != sorted(records, key=_order):
        raise corrupt(f"{where}: its order")
    return Index(start, sequence, keybag_generation, keybag_checksum, live_bytes, classes, records)


def check_indexes(file, log, keys):
    """Compares every index of the log with the frames in front of it; returns how many there are."""
    found = 0
    live, older, named = {}, {}, None
    for frame in log.frames:
        if frame.type == INDEX:
            found += 1
            _compare(read_index(file, log, keys, frame), live, older, frame)
        elif frame.type in (ITEM, DELETION):
            before = older.setdefault(frame.item, {})
            if frame.item in live:
                value = live.pop(frame.item)
                before[value.offset] = value, REPLACED
            if frame.type == DELETION:
                before.update((offset, (value, DELETED)) for offset, (value, _) in before.items())
            if frame.type == ITEM:
                live[frame.item] = frame
        elif frame.type == INDEX_PAGES and frame.metadata_length:
            raise corrupt(f"index pages at {frame.offset}")
    return found


def _compare(index, live, older, frame):
    newest = {record.item: record for record in index.records if record.newest}
    if set(newest) != set(live):
        raise corrupt(f"index at {frame.offset}: its items")
    for record in index.records:
        # A value that was erased with its item may be missing or present.
        if record.newest:
            meant, kind = live[record.item], NEWEST
        else:
            meant, kind = older.get(record.item, {}).get(record.offset, (None, None))
        if kind != record.kind or any(
            getattr(record, name) != getattr(meant, name) for name in vars(record) if name != "kind"
        ):
            raise corrupt(f"index at {frame.offset}: a record")
    counts = {}
    for one in live.values():
        name = one.policy, one.version, one.set_tag
        counts[name] = counts.get(name, 0) + 1
    if counts != index.classes or index.live_bytes != sum(one.length for one in live.values()):
        raise corrupt(f"index at {frame.offset}: its counts")


def _page(file, keys, identifier, start, number):
    place = start + number // PAGES_A_FRAME * (FRONT + PAGES_A_FRAME * PAGE + TAIL) + FRONT
    place += number % PAGES_A_FRAME * PAGE
    data = associated("tokenvault 1 index page", keys.vault, identifier, number.to_bytes(8, "little"))
    plain = unseal(keys.index, file[place : place + PAGE], data)
    if plain is None:
        raise corrupt(f"index page at {place}")
    return plain


def _length(pages):
    return -(-pages // PAGES_A_FRAME) * (FRONT + TAIL) + pages * PAGE


def _record(line, where):
    item, *fields, policy, kind, merged, value_tag = struct.unpack("<16sQQQQIIIBBHQ", line)
    if kind not in (NEWEST, REPLACED, DELETED) or merged > 1:
        raise corrupt(f"{where}: a record")
    return Record(item, *fields, policy, kind, value_tag)


def _order(record):
    return (*struct.unpack("<QQ", record.item), not record.newest, record.offset)
