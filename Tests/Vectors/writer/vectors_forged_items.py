"""Items whose frames are authentic and whose contents are not what they should be."""

from primitives import padded

from writer import items
from writer.catalog import named, opens
from writer.fields import text, u8, u16, u32, u64
from writer.vault import Vault

FAR = 253_402_300_799_999  # the last millisecond of the year 9999


def add(catalog):
    damaged(catalog)


def damaged(catalog):
    """Items whose frames are authentic and whose contents are not what they should be."""
    short = lambda plain: plain.ljust(padded(len(plain)), b"\0")
    pairs_65 = b"".join(text(f"{number:02}") + text("") for number in range(65))
    cases = {
        "metadata-too-long": (
            "Its metadata say that they are longer than they are.",
            "metadata: metadata length",
            {"plain_metadata": lambda item: items.metadata(item, length=u32(1 << 20))},
        ),
        "key-too-long": (
            "A text goes beyond the metadata's end.",
            "metadata: key",
            {"plain_metadata": lambda item: items.metadata(item, key=u32(60_000) + b"key")},
        ),
        "not-utf-8": (
            "The key is not UTF-8.",
            "metadata: key",
            {"plain_metadata": lambda item: items.metadata(item, key=text(b"\xff\xfe"))},
        ),
        "label-cut": (
            "The label goes beyond the metadata's end.",
            "metadata: label",
            {"plain_metadata": lambda item: items.metadata(item, label=u8(1) + u32(999) + b"l")},
        ),
        "attributes-cut": (
            "It has fewer attributes than it says.",
            "metadata: number of attributes",
            {"plain_metadata": lambda item: items.metadata(item, pairs=u16(9))},
        ),
        "key-1025": (
            "The key has 1,025 bytes.",
            "metadata: key",
            {"plain_metadata": lambda item: items.metadata(item, key=text("k" * 1025))},
        ),
        "attributes-65": (
            "It has 65 attributes.",
            "metadata: number of attributes",
            {"plain_metadata": lambda item: items.metadata(item, pairs=u16(65), attributes=pairs_65)},
        ),
        "metadata-empty": (
            "Its metadata are sealed, and nothing.",
            "metadata: metadata length",
            {"plain_metadata": lambda item: b""},
        ),
        "secret-too-long": (
            "The secret's length goes beyond the body.",
            "body: secret's length",
            {"plain_body": short(u64(9) + bytes(8))},
        ),
        "secret-absurd": (
            "The secret's length is 2^64 − 1.",
            "body: secret's length",
            {"plain_body": short(u64((1 << 64) - 1) + bytes(8))},
        ),
        "body-empty": ("Its body is sealed, and nothing.", "body: secret's length", {"plain_body": b""}),
    }

    def bad(**forged):
        vault = Vault("items", devices=0)
        vault.store("good", "fake")
        frame = vault.store("bad", "fake", **forged)
        vault.store("behind", "fake")
        return vault, frame

    vault, _ = bad()
    catalog.vault(
        "items", "Three items, which others are made of.", named("header: item"), vault.file(), [opens(vault)]
    )
    for name, (about, field, forged) in cases.items():
        vault, frame = bad(**forged)
        vault.refused["default", "bad"] = "corrupt"
        vault.items["default", "bad"].damaged_at = frame.offset
        told = opens(vault, problems=[frame.offset])
        catalog.vault(
            f"item-{name}",
            f"An authentic item that is damaged all the same. {about}",
            named(field),
            vault.file(),
            [told],
            of="items",
        )
