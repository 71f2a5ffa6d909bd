"""What crashes leave behind the log."""

from writer.catalog import named, opens
from writer.three import OfThree, three, without
from writer.vault import Vault


def add(catalog):
    torn(OfThree(catalog))


def torn(catalog):
    """What a crash leaves in place of the last commit."""

    def case(name, about, field, change, **told):
        vault, frames = three()
        file = change(bytearray(vault.file(4096)), frames[-1])
        without(vault, "third")
        catalog.vault(
            f"torn-{name}", f"A write that a crash tore: {about}.", named(field), bytes(file), [opens(vault, **told)]
        )

    def zeroed(file, start, end):
        file[start:end] = bytes(end - start)
        return file

    sector = lambda place: (place + 511) // 512 * 512
    case(
        "sector",
        "a sector in its middle is zeros",
        "frame: body",
        lambda file, frame: zeroed(file, sector(frame.offset + 300), sector(frame.offset + 300) + 512),
        torn=True,
    )
    case(
        "first-sector",
        "its share of the first sector is zeros",
        "frame: header",
        lambda file, frame: zeroed(file, frame.offset, sector(frame.offset + 1)),
        torn=True,
    )
    case(
        "end",
        "its last 16 bytes are zeros",
        "frame: checksum of the front",
        lambda file, frame: zeroed(file, frame.end - 16, frame.end),
        torn=True,
    )
    case(
        "cut",
        "zeros follow from a byte of its body on",
        "frame: body",
        lambda file, frame: zeroed(file, frame.offset + 201, frame.end),
        torn=True,
    )
    case(
        "cut-header",
        "zeros follow from a byte of its header on",
        "frame: header",
        lambda file, frame: zeroed(file, frame.offset + 77, frame.end),
        torn=True,
    )
    case(
        "file-ends",
        "the file ends in its body",
        "frame: body",
        lambda file, frame: file[: frame.offset + 999],
        torn=True,
    )
    case(
        "file-ends-in-header",
        "the file ends in its header",
        "frame: header",
        lambda file, frame: file[: frame.offset + 100],
        torn=True,
    )
    case(
        "file-ends-in-prefix",
        "the file ends in its prefix",
        "frame: length of the frame",
        lambda file, frame: file[: frame.offset + 5],
        torn=True,
    )
    case("gone", "nothing of it is there", "frame: TVF1", lambda file, frame: zeroed(file, frame.offset, frame.end))

    vault = Vault("three", devices=0)
    vault.store("first", "fake")
    vault.log.next_group()
    vault.store("one", "fake", alone=False, generation=2, ends=False)
    last = vault.store("two", "fake " * 200, alone=False, generation=2)
    file = bytearray(vault.file(2048))
    zeroed(file, last.offset, last.end)
    vault.items.pop(("default", "one"))
    vault.items.pop(("default", "two"))
    vault.log.sequence = 1
    catalog.vault(
        "torn-commit",
        "The last frame of a commit of two is missing: neither counts.",
        named("header: end of the commit"),
        bytes(file),
        [opens(vault, torn=True)],
    )

    vault = Vault("three", devices=0)
    vault.store("first", "fake")
    vault.log.next_group()
    one = vault.store("one", "fake " * 200, alone=False)
    vault.store("two", "fake " * 200, alone=False)
    file = zeroed(bytearray(vault.file()), sector(one.offset + 300), sector(one.offset + 300) + 512)
    vault.items.pop(("default", "one"))
    vault.items.pop(("default", "two"))
    vault.log.sequence = 1
    catalog.vault(
        "torn-group",
        "Of two commits that were written together, a sector of the first is missing: neither counts.",
        named("header: group start"),
        bytes(file),
        [opens(vault, torn=True)],
    )
