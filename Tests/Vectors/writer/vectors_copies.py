"""The two copies of the keybag, and the changes between them."""

from writer.catalog import fails, method, named, opens
from writer.fields import u16
from writer.keybag import SIZE
from writer.keys import KEY_FILE
from writer.vault import Vault

GIBIBYTE = 1 << 30


def add(catalog):
    copies(catalog)


def copies(catalog):
    fields = named(
        "keybag: keybag generation, checksum",
        "keybag frame: generation of the keybag in use from then on, its checksum",
    )

    def put(name, about, vault, openings):
        catalog.vault(
            f"copies-{name}", about, fields, vault.file(), openings, of=None if name == "changed" else "copies-changed"
        )

    vault = changed("copies")
    put(
        "changed",
        "The keybag was changed: both copies are the new one, and a frame names it.",
        vault,
        [opens(vault), opens(vault, 2)],
    )
    vault = changed("copies", finish=False)
    put(
        "unfinished",
        "A crash came before the second copy was written.",
        vault,
        [opens(vault, problems=[SIZE]), opens(vault, 2, problems=[SIZE])],
    )
    vault = changed("copies", named=False)
    before = {"sequence": vault.log.sequence, "keybagGeneration": vault.keybag.generation - 1}
    put(
        "unnamed",
        "A crash came before the frame that names the first copy: the keybag is still the second one.",
        vault,
        [opens(vault, problems=[0], **before), fails("wrongPassphrase", by=method(KEY_FILE, b"2" * 32))],
    )
    for number in [0, 1]:
        vault = changed("copies")
        vault.copies[number] = flipped(vault.copies[number])
        put(f"damaged-{number + 1}", f"Copy {number + 1} is damaged.", vault, [opens(vault, problems=[number * SIZE])])
    vault = changed("copies", finish=False)
    vault.copies[0] = flipped(vault.copies[0])
    put(
        "damaged-new",
        "The copy in use is damaged; the other is older and opens nothing.",
        vault,
        [fails("corrupt")],
    )
    vault = changed("copies", named=False)
    vault.keybag.generation += 1
    vault.copies = [vault.keybag.copy()] * 2
    put(
        "two-newer",
        "Both copies are two generations newer than the log says: the log is older than they are.",
        vault,
        [fails("rolledBack")],
    )
    vault = changed("copies")
    old = Vault("copies", devices=0)
    vault.copies = [old.copies[0]] * 2
    put("older", "Both copies are those from before a change.", vault, [fails("corrupt")])
    vault = changed("copies")
    vault.copies = [flipped(copy) for copy in vault.copies]
    put("both-damaged", "Both copies are damaged.", vault, [fails("corrupt", "open")])
    vault = changed("copies")
    vault.copies = [flipped(copy, 0) for copy in vault.copies]
    put("not-a-vault", "Neither copy begins as one does.", vault, [fails("notAVault", "open")])
    vault = changed("copies")
    vault.copies = [vault.keybag.copy(version=u16(2)), flipped(vault.copies[1], 0)]
    put(
        "newer-and-damaged",
        "One copy is a newer program's, the other begins like none.",
        vault,
        [fails("unsupportedFormat", "open")],
    )
    vault = changed("copies")
    for name, length, code in [("empty-file", 0, "notAVault"), ("half-a-copy", 4096, "corrupt")]:
        catalog.vault(
            f"copies-{name}",
            f"The first {length:,} bytes of a vault.",
            fields,
            vault.file()[:length],
            [fails(code, "open")],
            of="copies-changed",
        )
    catalog.vault(
        "copies-only",
        "The two copies of the keybag and nothing behind them.",
        named("frame: TVF1"),
        vault.file()[: 2 * SIZE],
        [fails("corrupt")],
        of="copies-changed",
    )


def changed(name, **how):
    """A vault whose keybag got a second slot."""
    vault = Vault(name, devices=0)
    vault.store("k", "fake")
    vault.keybag.add_slot(KEY_FILE, b"2" * 32)
    vault.change_keybag(**how)
    return vault


def flipped(copy, place=5000):
    return copy[:place] + bytes([copy[place] ^ 1]) + copy[place + 1 :]
