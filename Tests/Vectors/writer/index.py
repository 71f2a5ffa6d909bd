"""The index: its pages, its summary and the pointer to it."""

import struct

from primitives import associated, digest

from writer import log as frames
from writer.fields import Fields, u16, u32, u64, u8

PER_PAGE, PAGES_A_FRAME, PLAIN = 56, 320, 4056


def records(log):
    """(frame, kind) of the live values and the older ones, in the order of the index."""
    live, older = {}, {}
    for frame in log.frames:
        if frame.type not in (frames.ITEM, frames.DELETION):
            continue
        before = older.setdefault(frame.item, [])
        if frame.item in live:
            before.append((live.pop(frame.item), 2))
        if frame.type == frames.ITEM:
            live[frame.item] = frame
        else:
            before[:] = [(value, 3) for value, _ in before]
    found = [(frame, 1) for frame in live.values()] + [one for each in older.values() for one in each]
    return sorted(found, key=lambda one: (one[0].item, one[1] != 1, one[0].offset))


def line(frame, kind, **forged):
    """A record, 72 bytes."""
    fields = Fields({name.replace("_", " "): value for name, value in forged.items()})
    fields.add("item", struct.pack("<QQ", *frame.item))
    fields.add("offset", u64(frame.offset))
    fields.add("generation", u64(frame.generation))
    fields.add("service tag", u64(frame.service_tag))
    fields.add("set tag", u64(frame.set_tag))
    fields.add("version", u32(frame.version))
    fields.add("m", u32(frame.metadata))
    fields.add("b", u32(frame.body))
    fields.add("policy", u8(frame.policy))
    fields.add("kind", u8(kind))
    fields.add("merged", u16(1 if frame.stored_by else 0))
    fields.add("value tag", u64(frame.value_tag))
    return fields.finish()


def write_index(vault, checkpoint=True, point=True, forged=None):
    """An index behind the log of `vault`, and the checkpoint and the pointer that it takes. `forged` replaces fields
    of the summary."""
    log = vault.log
    found = records(log)
    lines = [line(frame, kind) for frame, kind in found]
    identifier = log.source.bytes(16)
    log.next_group()
    start, sequence = log.end, log.sequence
    pages = [lines[place : place + PER_PAGE] for place in range(0, len(lines), PER_PAGE)]
    sealed = []
    for number, page in enumerate(pages):
        data = associated("tokenvault 1 index page", log.vault, identifier, u64(number))
        sealed.append(log.source.seal(log.keys["index"], b"".join(page).ljust(PLAIN, b"\0"), data))
    for place in range(0, len(sealed), PAGES_A_FRAME):
        log.frame(frames.INDEX_PAGES, sequence, body=b"".join(sealed[place : place + PAGES_A_FRAME]), ends=False)
    live = [frame for frame, kind in found if kind == 1]
    counts = {}
    for frame in live:
        name = frame.policy, frame.version, frame.set_tag
        counts[name] = counts.get(name, 0) + 1
    fields = Fields({name.replace("_", " "): value for name, value in (forged or {}).items()})
    fields.add("identifier", identifier)
    fields.add("start", u64(start))
    fields.add("sequence", u64(sequence))
    fields.add("keybag generation", u64(vault.keybag.generation))
    fields.add("keybag checksum", vault.copies[0][-32:])
    fields.add("records", u64(len(found)))
    fields.add("live bytes", u64(sum(frame.length for frame in live)))
    fields.add("classes", u32(len(counts)))
    fields.add("pages", u32(len(pages)))
    fields.add(
        "counts",
        b"".join(
            u8(policy) + bytes(3) + u32(version) + u64(tag) + u64(count)
            for (policy, version, tag), count in counts.items()
        ),
    )
    fields.add("fences", b"".join(page[0][:8] for page in pages))
    place = log.end
    data = associated("tokenvault 1 index summary", log.vault, u64(log.epoch), log.identifier, u64(place))
    summary = log.frame(frames.INDEX, sequence, body=log.source.seal(log.keys["index"], fields.finish(), data))
    if checkpoint:
        log.next_group()
        log.frame(frames.CHECKPOINT, sequence)
    if point:
        vault.pointer = pointer(summary.offset)
    return summary


def pointer(offset, **forged):
    fields = Fields(forged)
    fields.add("magic", b"TVINDEX1")
    fields.add("offset", u64(offset))
    fields.add("checksum", digest(fields.finish(), 16))
    return fields.finish().ljust(512, b"\0")
