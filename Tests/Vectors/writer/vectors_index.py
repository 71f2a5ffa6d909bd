"""Vaults with an index, whole and damaged: what is damaged costs time and nothing else."""

from writer.catalog import NO_DEVICE, named, opens
from writer.fields import u32, u64
from writer.index import pointer, write_index
from writer.log import FRONT
from writer.vault import Vault

POINTER = 16384


def indexed(count=2, tail=True, **how):
    vault = Vault("index", devices=0)
    for number in range(count):
        vault.store(f"key {number}", f"fake {number}")
    summary = write_index(vault, **how)
    if tail:
        vault.store("key 0", "newer than the index")
        vault.store("behind", "fake")
    return vault, summary


def add(catalog):
    pages(catalog)
    damaged(catalog)


def pages(catalog):
    vault = Vault("index-pages")
    for number in range(24):
        for policy in [1, 2, 3, 4]:
            vault.store(f"key {number} {policy}", f"fake {number}", policy=policy, service=f"service {number % 3}")
    for number in range(40):
        vault.store("key 1 1", f"value {number}", service="service 1")
    vault.delete("key 2 2", service="service 2")
    vault.store("key 2 2", "again", policy=2, service="service 2")
    vault.store("key 2 2", "and again", policy=2, service="service 2")
    vault.store("merged", "fake", stored_by=vault.log.frames[4].generation + (1 << 60))
    vault.checkpoint()
    write_index(vault)
    vault.store("key 0 1", "newer than the index", service="service 0")
    vault.delete("key 3 3", service="service 0")
    vault.store("behind", "fake", policy=2)
    catalog.vault(
        "index-pages",
        "An index of three pages, with classes of both sets, replaced and deleted values, and a tail behind it.",
        named(
            "record: item, offset of the frame, generation, service tag, set tag, class-key version, m, b, policy, "
            "kind, whether the frame names the commit that stored the value, value tag",
            "summary: identifier of the index, offset of its group, the vault's sequence, generation of the keybag "
            "in use, its checksum",
            "summary: number of records, bytes of the frames of all live items, number of classes, number of "
            "pages, counts, fences",
            "pointer: TVINDEX1, offset of a frame of type 129, checksum, zeros",
            "header: type",
        ),
        vault.file(),
        [opens(vault, state="here", device=0), opens(vault, lacks=NO_DEVICE)],
        {"here": vault.state()},
    )
    vault, _ = indexed()
    catalog.vault(
        "index",
        "An index of two items, which others are made of.",
        named("summary: number of records"),
        vault.file(),
        [opens(vault)],
    )
    vault, _ = indexed(56)
    catalog.vault(
        "index-56",
        "An index whose one page is full.",
        named("summary: number of pages, fences"),
        vault.file(),
        [opens(vault)],
    )
    vault, _ = indexed(57)
    catalog.vault(
        "index-57",
        "An index whose second page has one record.",
        named("summary: number of pages, fences"),
        vault.file(),
        [opens(vault)],
    )
    vault, _ = indexed()
    write_index(vault)
    vault.store("last", "fake")
    catalog.vault(
        "index-two",
        "Two indexes: the pointer leads to the second.",
        named("pointer: offset of a frame of type 129"),
        vault.file(),
        [opens(vault)],
        of="index",
    )
    vault, summary = indexed()
    write_index(vault)
    vault.pointer = pointer(summary.offset)
    catalog.vault(
        "index-old-pointer",
        "Two indexes: the pointer still leads to the first.",
        named("pointer: offset of a frame of type 129"),
        vault.file(),
        [opens(vault)],
        of="index",
    )
    vault, _ = indexed(tail=False, checkpoint=False)
    catalog.vault(
        "index-last",
        "Nothing follows the index that would say that its pages are durable.",
        named("header: group start"),
        vault.file(),
        [opens(vault)],
        of="index",
    )
    vault = Vault("index", devices=0)
    write_index(vault)
    vault.store("behind", "fake")
    catalog.vault(
        "index-none",
        "An index without a page.",
        named("summary: number of records, number of pages"),
        vault.file(),
        [opens(vault)],
        of="index",
    )
    vault, _ = indexed(point=False)
    catalog.vault(
        "index-unpointed",
        "An index that no pointer leads to.",
        named("pointer: zeros"),
        vault.file(),
        [opens(vault)],
        of="index",
    )


def damaged(catalog):
    vault, _ = indexed()
    file = vault.file()
    whole = vault.pointer
    for name, about, field, contents in [
        ("magic", "does not begin as one", "TVINDEX1", b"X" + whole[1:]),
        ("checksum", "has another checksum", "checksum", whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]),
        ("zeros", "has a zero that is none", "zeros", whole[:511] + b"\1"),
        ("frame", "leads to an item's frame", "offset of a frame of type 129", pointer(vault.log.frames[1].offset)),
        ("beyond", "leads behind the end of the file", "offset of a frame of type 129", pointer(1 << 62)),
        ("within", "leads into a frame", "offset of a frame of type 129", pointer(vault.log.frames[1].offset + 8)),
    ]:
        catalog.vault(
            f"index-pointer-{name}",
            f"The pointer {about}.",
            named(f"pointer: {field}"),
            file[:POINTER] + contents + file[POINTER + 512 :],
            [opens(vault, problems=[POINTER])],
            of="index",
        )
    for name, about, place in [
        ("page", "A page of the index is damaged.", lambda summary, vault: vault.log.frames[3].offset + FRONT + 100),
        ("summary", "The summary of the index is damaged.", lambda summary, vault: summary.offset + FRONT + 50),
    ]:
        vault, summary = indexed()
        file = bytearray(vault.file())
        file[place(summary, vault)] ^= 1
        frame = vault.log.frames[3] if name == "page" else summary
        problems = sorted({frame.offset, summary.offset})
        catalog.vault(
            f"index-damaged-{name}",
            about,
            named("summary: identifier of the index"),
            bytes(file),
            [opens(vault, problems=problems)],
            of="index",
        )
    for name, field, part, value in [
        ("start", "offset of its group", "start", u64(16896)),
        ("pages", "number of pages", "pages", u32(9)),
        ("records", "number of records", "records", u64(1 << 60)),
        ("classes", "number of classes", "classes", u32((1 << 32) - 1)),
    ]:
        vault, _ = indexed(forged={part: value})
        catalog.vault(
            f"index-summary-{name}",
            f"An authentic summary that is not so: its {field}.",
            named(f"summary: {field}"),
            vault.file(),
            [opens(vault)],
            of="index",
        )
