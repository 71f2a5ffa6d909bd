"""Export files, whole and changed."""

from writer.catalog import fails, named
from writer.export import PASSPHRASE, Export
from writer.fields import u16, u32
from writer.items import Item
from writer.vault import NOON

RIGHT = {"passphrase": PASSPHRASE.decode()}
GIBIBYTE = 1 << 30


def three():
    details = {
        "label": "Größe",
        "attributes": {"host": "example.com"},
        "created": NOON,
        "modified": NOON + 1,
        "expires": NOON * 2,
    }
    plain = {"label": None, "attributes": {}, "created": 0, "modified": 0, "expires": None}
    return [
        Item("default", "k", b"fake", 1, None, **details),
        Item("é", "🔑", bytes(range(256)), 2, None, **plain),
        Item("default", "empty", b"", 1, None, **plain),
    ]


def told(found):
    expected = [item.expected() for item in found]
    for item in expected:
        del item["generation"]
    return RIGHT | {"items": expected}


def written(name, found=None, end=True, **how):
    export = Export(name, **how)
    for item in three() if found is None else found:
        export.item(item)
    if end:
        export.end()
    return export


def add(catalog):
    all_fields = named(
        "export: TVEXPORT, version, zero, Argon2id passes, memory, salt, commitment, header of the stream",
        "message: kind, policy, zero, length",
    )
    export = written("export")
    file = export.file()
    wrong = [
        fails("wrongPassphrase", "read", by={"passphrase": each}) for each in ["another", PASSPHRASE.decode() + " "]
    ]
    catalog.export("whole", "Three items.", all_fields, file, [told(three())] + wrong)
    marked = three()
    marked[1].marked = True
    catalog.export(
        "origin",
        "An item of three whose policy a session without the root key chose.",
        named("metadata: whether there is a proof of the policy"),
        written("export-origin", marked).file(),
        [told(marked)],
    )
    catalog.export("empty", "No items.", named("message: kind"), written("export-empty", []).file(), [told([])])
    catalog.export(
        "cost",
        "A key that costs more passes over more memory than the least.",
        named("export: Argon2id passes, memory"),
        written("export-cost", passes=4, memory=80 << 20).file(),
        [told(three())],
    )

    def refused(name, about, field, contents, code="corrupt", of=None):
        catalog.export(name, about, named(field), contents, [fails(code, "read", by=RIGHT)], of=of)

    lengths = [len(message) for message in export.messages]
    for name, about, length in [
        ("nothing", "An empty file.", 0),
        ("front-cut", "The front is cut.", 95),
        ("front-only", "Nothing follows the front.", 96),
        ("length-cut", "The file ends in a message's length.", 98),
        ("message-cut", "The file ends in a message.", len(file) - 1),
        ("without-end", "The last message is missing.", len(file) - lengths[-1]),
        ("two-items", "The file ends behind its second item.", 96 + sum(lengths[:2])),
    ]:
        refused(name, about, "message: length", file[:length])
    refused("byte-behind", "A byte follows the end.", "message: kind", file + b"\0")
    exchanged = export.messages[:]
    exchanged[0], exchanged[2] = exchanged[2], exchanged[0]
    refused("exchanged", "Two messages changed places.", "message: kind", export.front + b"".join(exchanged))
    flip = lambda place: file[:place] + bytes([file[place] ^ 1]) + file[place + 1 :]
    refused("changed-message", "A bit of a message.", "message: kind", flip(200))
    refused("changed-length", "A bit of a message's length.", "message: length", flip(96))
    refused("changed-stream", "A bit of the stream's header.", "export: header of the stream", flip(75))
    refused("changed-salt", "A bit of the salt.", "export: salt", flip(25), "wrongPassphrase")
    refused("changed-commitment", "A bit of the commitment.", "export: commitment", flip(45), "wrongPassphrase")
    refused("changed-magic", "It does not begin as an export.", "export: TVEXPORT", flip(3))
    refused(
        "newer",
        "A newer version.",
        "export: version",
        written("export-newer", version=u16(2)).file(),
        "unsupportedFormat",
    )
    refused(
        "zero", "A zero that is none.", "export: zero", written("export-zero", zero=u16(1)).file(), "unsupportedFormat"
    )
    for name, passes, memory in [
        ("passes-2", 2, 64 << 20),
        ("passes-13", 13, 64 << 20),
        ("memory-small", 3, (64 << 20) - 1),
        ("memory-large", 3, 2 * GIBIBYTE + 1),
        ("memory-absurd", 3, (1 << 64) - 1),
    ]:
        contents = written(f"export-{name}", passes=passes, memory=memory, cost=(1, 8192)).file()
        refused(
            f"cost-{name}",
            f"It asks for {passes} passes over {memory:,} bytes.",
            "export: Argon2id passes" if "passes" in name else "export: memory",
            contents,
        )

    export = written("export-tag", end=False)
    export.end(final=False)
    refused(
        "end-not-final",
        "The last message says that it is the end and lacks the stream's final tag.",
        "message: kind",
        export.file(),
    )
    export = Export("export-final")
    export.item(three()[0])
    export.message(b"\1\1\0\0" + u32(0), final=True)
    refused("item-final", "An item has the stream's final tag.", "message: kind", export.file())
    for name, about, count in [("count-less", "one item less", 2), ("count-more", "one item more", 4)]:
        export = written(f"export-{name}", end=False)
        export.end(count)
        refused(name, f"The end counts {about} than there are.", "message: length", export.file())
    first = three()[0]
    for name, about, field, how in [
        ("policy-3", "an item of a policy that stays on its device", "policy", {"policy": 3}),
        ("policy-0", "an item of policy 0", "policy", {"policy": 0}),
        ("kind-3", "a message of kind 3", "kind", {"kind": 3}),
        ("message-zero", "a message with a zero that is none", "zero", {"zero": u16(1)}),
        ("metadata-length", "an item whose metadata are longer than its message", "length", {"length": u32(100_000)}),
    ]:
        export = Export(f"export-{name}")
        export.item(first, **how)
        export.end()
        refused(name, f"It has {about}.", f"message: {field}", export.file())
