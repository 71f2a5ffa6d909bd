"""Damage to the log, and frames that were moved."""

from writer import items, log
from writer.catalog import fails, named, opens
from writer.fields import u64
from writer.three import OfThree, three
from writer.vault import Vault


def add(whole):
    catalog = OfThree(whole)
    damage(catalog)
    spliced(catalog)


def damage(catalog):
    def case(name, about, fields, change, offset=None, which=1, at=None):
        vault, frames = three()
        file = bytearray(vault.file())
        frame = frames[which]
        change(file, frame)
        place = frame.offset if at is None else at
        catalog.vault(
            f"damage-{name}", f"Damage: {about}.", named(fields), bytes(file), [fails("corrupt", offset=place)]
        )

    def flip(place):
        def change(file, frame):
            file[place(frame)] ^= 1

        return change

    case("magic", "a bit of a frame's first four bytes", "frame: TVF1", flip(lambda frame: frame.offset))
    case("length", "a bit of a frame's length", "frame: length of the frame", flip(lambda frame: frame.offset + 5))
    case("header", "a bit of a frame's sealed header", "frame: header", flip(lambda frame: frame.offset + 60))
    for name, field, place in [
        ("last-header", "header", lambda frame: frame.offset + 60),
        ("last-metadata", "metadata", lambda frame: frame.offset + 198),
        ("last-body", "body", lambda frame: frame.offset + 700),
        ("last-digest", "first half of the content digest", lambda frame: frame.end - 20),
        ("last-end", "checksum of the front", lambda frame: frame.end - 2),
    ]:
        case(name, f"a bit of the last frame's {field}", f"frame: {field}", flip(place), which=2)

    vault, frames = three()
    file = bytearray(vault.file(4096))
    file[frames[-1].end + 2000] = 1
    catalog.vault(
        "damage-behind",
        "A byte that is not zero among the zeros behind the last frame: a frame whose "
        "other sectors are missing might have left it.",
        named("frame: TVF1"),
        bytes(file),
        [opens(vault, problems=[frames[-1].end + 2000])],
    )

    vault, frames = three()
    file = bytearray(vault.file())
    file[log.START + 200] ^= 1
    catalog.vault(
        "damage-genesis",
        "A bit of the genesis frame's body.",
        named("genesis: epoch number"),
        bytes(file),
        [fails("corrupt")],
    )

    vault, frames = three()
    vault.log.frames, vault.log.data, vault.log.chain, vault.log.group = [], bytearray(), bytes(32), log.START
    vault.store("k", "fake", remember=False)
    catalog.vault(
        "damage-no-genesis", "The first frame is an item's.", named("header: type"), vault.file(), [fails("corrupt")]
    )

    # A file that ends within its initial contents: each commit that is left is whole.
    for name, about, left in [
        ("cut-beginning", "Genesis and ancestry are left", 2),
        ("cut-items", "All is left but the checkpoint", -1),
    ]:
        vault, _ = three()
        vault.compact()
        file = bytearray(vault.file())
        end = vault.log.frames[left].offset
        file[end:] = bytes(len(file) - end)
        catalog.vault(
            f"damage-{name}",
            f"A compacted vault's file, with zeros behind a part of what was written with it. {about}.",
            named("header: group start"),
            bytes(file),
            [fails("corrupt")],
        )

    # Contents in front of the last group: the damage shows when they are read.
    for name, place, field in [("metadata", 198, "metadata"), ("body", 700, "body")]:
        vault, frames = three()
        file = bytearray(vault.file())
        file[frames[0].offset + place] ^= 1
        vault.refused["default", "first"] = "corrupt"
        vault.items["default", "first"].damaged_at = frames[0].offset
        catalog.vault(
            f"damage-{name}",
            f"A bit of an item's sealed {field}, in front of the last group: the vault opens, the item does not.",
            named(f"frame: {field}"),
            bytes(file),
            [opens(vault, problems=[frames[0].offset])],
        )
    for name, place in [("trailer", 20), ("trailer-front", 4)]:
        vault, frames = three()
        file = bytearray(vault.file())
        file[frames[0].end - place] ^= 1
        catalog.vault(
            f"damage-{name}",
            "A bit of a frame's last 32 bytes, in front of the last group: only a check of all finds it.",
            named("frame: checksum of the front"),
            bytes(file),
            [opens(vault, problems=[frames[0].offset])],
        )

    vault = Vault("three", devices=0)
    vault.log.next_group()
    vault.log.frame(log.KEYBAG, 1, body=bytes(80))
    vault.store("k", "fake")
    catalog.vault(
        "damage-keybag-frame",
        "The body of a keybag frame does not open.",
        named("keybag frame: its checksum"),
        vault.file(),
        [fails("corrupt")],
    )
    # Another file of the vault has other contents in a record of the same item or type and the same generation.
    vault, frames = three()
    file, first = bytearray(vault.file()), frames[0]
    other, _ = three()
    other.log.begin(1, bytes(16), 0)
    other.begin()
    item = other.items["default", "first"]
    other.add(item, items.metadata(item), items.body(b"FAKE"[: len(item.value)].ljust(len(item.value), b"!")))
    contents = slice(first.offset + log.FRONT, first.end - log.TAIL)
    start = other.log.frames[-1].offset - log.START + log.FRONT
    file[contents] = other.log.data[start : start + contents.stop - contents.start]
    vault.refused["default", "first"] = "corrupt"
    vault.items["default", "first"].damaged_at = first.offset
    catalog.vault(
        "damage-value-of-another-file",
        "An item's contents are those that another file of the vault has under the same generation: the item does not open.",
        named("header: value tag", "frame: metadata, body"),
        bytes(file),
        [opens(vault, problems=[first.offset])],
    )
    vault = Vault("three", devices=0)
    frame = vault.name_keybag(1, bytes(32))
    vault.store("k", "fake")
    file = bytearray(vault.file())
    body = vault.log.control(log.KEYBAG, frame.generation, u64(1) + vault.copies[0][-32:])
    file[frame.offset + log.FRONT : frame.end - log.TAIL] = body
    catalog.vault(
        "damage-record-of-another-file",
        "A keybag frame's contents are those that another file of the vault has under the same generation.",
        named("header: content digest", "keybag frame: its checksum"),
        bytes(file),
        [fails("corrupt")],
    )
    vault = Vault("three", devices=0)
    vault.name_keybag(1, bytes(32))
    catalog.vault(
        "keybag-frame-other",
        "The last keybag frame names a keybag that neither copy is.",
        named("keybag frame: its checksum"),
        vault.file(),
        [fails("corrupt")],
    )
    vault = Vault("three", devices=0)
    vault.log.begin(1, bytes(16), 0)
    vault.keybag.generation = 9
    vault.begin()
    vault.keybag.generation = 1
    catalog.vault(
        "genesis-other",
        "The genesis frame names a newer keybag than both copies are.",
        named("genesis: generation of the keybag in use"),
        vault.file(),
        [fails("corrupt")],
    )


def spliced(catalog):
    vault, frames = three()
    place = lambda frame: slice(frame.offset - log.START, frame.end - log.START)
    pieces = [bytes(vault.log.data[place(frame)]) for frame in frames]
    front = bytes(vault.log.data[: frames[0].offset - log.START])
    other, theirs = three("another")
    foreign = bytes(other.log.data[place(theirs[1])])

    def case(name, about, parts, offset):
        file = b"".join(vault.copies) + bytes(512) + front + b"".join(parts)
        catalog.vault(
            f"spliced-{name}",
            about,
            named("header: chain value of the frame before"),
            file + bytes(64),
            [fails("corrupt", offset=offset)],
        )

    first, second, third = pieces
    case("exchanged", "Two frames changed places.", [first, third, second], frames[1].offset)
    case("left-out", "A frame was left out.", [first, third], frames[1].offset)
    case("twice", "A frame stands there twice.", [first, first, second, third], frames[1].offset)
    case("other-vault", "A frame of another vault is in a frame's place.", [first, foreign, third], frames[1].offset)
    old, again = three()[0], three()[0]
    again.compact()
    compacted = bytes(again.log.data)
    frame = next(each for each in old.log.frames if each.generation == 2)
    ours = next(each for each in again.log.frames if each.generation == 2)
    before, behind = compacted[: ours.offset - log.START], compacted[ours.end - log.START :]
    file = b"".join(again.copies) + bytes(512) + before + bytes(old.log.data[place(frame)]) + behind + bytes(64)
    catalog.vault(
        "spliced-epoch",
        "A frame of the epoch before is in the place of its copy.",
        named("header: chain value of the frame before"),
        file,
        [fails("corrupt", offset=ours.offset)],
    )
