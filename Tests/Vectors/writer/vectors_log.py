"""The log: unknown records, headers otherwise than they should be, and torn writes."""

import struct

from writer import log
from writer.catalog import fails, named, opens
from writer.fields import u8, u32, u64
from writer.three import OfThree, three


def add(whole):
    catalog = OfThree(whole)
    vault, _ = three()
    catalog.vault(
        "three",
        "Three items in three groups, which others are made of.",
        named("header: group start"),
        vault.file(),
        [opens(vault)],
    )
    records(catalog)
    headers(catalog)


def records(catalog):
    vault, _ = three()
    vault.log.next_group()
    for type_ in [128, 130, 255]:
        vault.log.frame(
            type_, vault.log.sequence + 1, bytes(48), bytes(640), policy=200, version=9, item=(1, 2), set_tag=3
        )
    vault.store("behind", "fake")
    catalog.vault(
        "ignorable",
        "Records of types that a reader may skip: 128 outside of an index, 130 and 255.",
        named("header: type"),
        vault.file(),
        [opens(vault)],
    )
    for type_ in [0, 8, 127]:
        vault, _ = three()
        vault.log.next_group()
        vault.log.frame(type_, vault.log.sequence + 1)
        vault.store("behind", "fake")
        catalog.vault(
            f"critical-{type_}",
            f"A record of type {type_}, which a reader must not skip.",
            named("header: type"),
            vault.file(),
            [fails("unsupportedFormat")],
        )
    vault, _ = three()
    vault.log.next_group()
    sequence = vault.log.sequence
    vault.log.frame(8, sequence + 1, ends=False)
    vault.log.sequence = sequence
    catalog.vault(
        "critical-uncommitted",
        "A record of type 8 in a commit whose end is missing: it does not count.",
        named("header: type, end of the commit"),
        vault.file(),
        [opens(vault, torn=True)],
    )
    vault, _ = three()
    vault.checkpoint()
    vault.checkpoint(counts=False)
    vault.store("behind", "fake")
    vault.checkpoint(log.SUPERSEDED, counts=False)
    catalog.vault(
        "checkpoint-superseded",
        "Checkpoints with a generation of their own and without, and a superseded record at the end.",
        named("header: type, generation"),
        vault.file(),
        [opens(vault)],
    )
    vault, _ = three()
    vault.delete("second")
    vault.store("first", "newer", policy=2)
    vault.compact()
    catalog.vault(
        "compacted",
        "A second epoch, as a compaction leaves it, and nothing stored since.",
        named("genesis: epoch number, epoch identifier, base sequence", "header: group start"),
        vault.file(),
        [opens(vault)],
    )
    vault.store("behind", "fake")
    catalog.vault(
        "compacted-and-more",
        "The same with an item stored since.",
        named("genesis: base sequence"),
        vault.file(),
        [opens(vault)],
    )


def headers(catalog):
    newer = "unsupportedFormat"
    for name, about, field, forged, code in [
        ("end-2", "its second byte is 2", "header: end of the commit", {"ends": 2}, newer),
        ("zero", "its fourth byte is 1", "header: zero", {"zero": u8(1)}, newer),
        ("generation", "its generation is 2^53", "header: generation", {"generation": u64(1 << 53)}, newer),
        ("metadata-long", "it has metadata of 262,145 bytes", "header: m", {"m": u32(262_145)}, newer),
        ("body-long", "it has a body of 1,400,001 bytes", "header: b", {"b": u32(1_400_001)}, newer),
        (
            "chain",
            "it has another chain value",
            "header: chain value of the frame before",
            {"previous": bytes(32)},
            "corrupt",
        ),
    ]:
        vault, _ = three()
        place = vault.log.end
        forged = dict(forged)
        ends = forged.pop("ends", True)
        vault.store("forged", "fake", remember=False, ends=ends, header=forged)
        told = fails(code, offset=place if code == "corrupt" else None)
        catalog.vault(f"header-{name}", f"A header that is authentic, but {about}.", named(field), vault.file(), [told])
    vault, _ = three()
    vault.log.next_group()
    vault.log.frame(log.CHECKPOINT, vault.log.sequence, header={"stored_by": u64(1 << 63)})
    catalog.vault(
        "header-stored-by",
        "A header that is authentic, but names a storing commit, and is of no item.",
        named("header: tag of the storing commit"),
        vault.file(),
        [fails(newer)],
    )
    vault, _ = three()
    vault.store("merged", "fake", stored_by=1 << 63)
    catalog.vault(
        "merged",
        "The last item names the commit that stored it.",
        named("header: tag of the storing commit"),
        vault.file(),
        [opens(vault)],
    )
    for name, about, field, forged, code in [
        ("policy", "policy 6", "header: policy", {"policy": u8(6)}, "unsupportedFormat"),
        (
            "key-version",
            "class keys of version 2",
            "header: class-key version",
            {"version": u32(2)},
            "unsupportedFormat",
        ),
        ("item", "another item's name", "header: item", {"item": struct.pack("<QQ", 1, 2)}, None),
        (
            "set-tag",
            "a set that the keybag does not have",
            "header: set tag",
            {"policy": u8(3), "set_tag": u64(99)},
            None,
        ),
    ]:
        vault, _ = three()
        vault.store("forged", "fake", remember=name == "policy" or name == "key-version", header=forged)
        told = opens(vault)
        if code:
            item = vault.items["default", "forged"]
            item.policy = 6 if name == "policy" else item.policy
            vault.refused["default", "forged"] = code
            told = opens(vault)
        if name == "item":
            told["unreadable"] = [
                {
                    "number": [1, 2],
                    "policy": "when-unlocked",
                    "generation": 4,
                    "code": "corrupt",
                    "offset": vault.log.frames[-1].offset,
                }
            ]
            told["problems"] = [vault.log.frames[-1].offset]
        if name == "set-tag":
            told["items"] = [item for item in told["items"] if item["key"] != "forged"]
        catalog.vault(
            f"header-{name}", f"An authentic header of an item that names {about}.", named(field), vault.file(), [told]
        )
