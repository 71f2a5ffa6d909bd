"""Items of every size, name and detail, and such as are not what they should be."""

from writer import items
from writer.catalog import fails, method, named, opens
from writer.keys import KEY_FILE
from writer.vault import KEY, NOON, Vault

FAR = 253_402_300_799_999  # the last millisecond of the year 9999


def vault_with_items(name, pairs, **details):
    vault = Vault(name, devices=0)
    for key, value in pairs:
        vault.store(key, value, **details)
    return vault


def add(catalog):
    vault = Vault("empty", devices=0).finished()
    catalog.vault(
        "empty",
        "A new vault without items, opened by a key file.",
        named(
            "keybag: TKNVAULT, version, vault identifier, keybag generation, number of slots",
            "keybag: number of class sets, log key, root code, holder code, zeros, checksum",
            "key: slot key",
            "key: commitment",
            "key: slot wrap",
            "key: root R, passcode root P",
            "key: holder root A",
            "key: root code",
            "key: holder code",
            "key: log key",
            "key: class keys",
            "frame: TVF1, length of the frame, header, body, first half of the content digest, checksum of the front",
            "genesis: epoch number, epoch identifier, base sequence, generation of the keybag in use, its checksum",
            "pointer: zeros",
        ),
        vault.file(),
        [opens(vault), fails("wrongPassphrase", by=method(KEY_FILE, b"another " + KEY))],
    )
    catalog.vault(
        "no-zeros",
        "The file ends with its last frame.",
        named("frame: length of the frame"),
        vault.file(0),
        [opens(vault)],
        of="empty",
    )
    catalog.vault(
        "many-zeros",
        "128 KiB of zeros follow the last frame.",
        named("frame: TVF1"),
        vault.file(128 << 10),
        [opens(vault)],
        of="empty",
    )
    sizes(catalog)
    names(catalog)
    origins(catalog)
    details(catalog)


def sizes(catalog):
    # A body is 8 bytes longer than its secret. At these lengths its padding ends, begins or is missing.
    lengths = [0, 1, 7, 8, 9, 16, 17, 24, 25, 119, 120, 121, 247, 248, 249, 504, 505, 1016, 1017, 4088, 4089]
    pairs = [(f"{length:05}", bytes(number * 7 & 255 for number in range(length))) for length in lengths]
    vault = vault_with_items("sizes", pairs)
    catalog.vault(
        "sizes",
        "Secrets of 0 to 4,089 bytes, at the edges of the padding.",
        named("body: secret's length, secret, zeros up to the padded length", "header: m, b, content digest"),
        vault.file(),
        [opens(vault)],
    )
    vault = vault_with_items("size-large", [("large", bytes(range(256)) * 160)])
    catalog.vault("size-large", "A secret of 40 KiB.", named("header: b", "body: secret"), vault.file(), [opens(vault)])


def names(catalog):
    pairs = [
        ("é", "one scalar"),
        ("e\u0301", "two scalars"),
        ("ﬀ", "a ligature"),
        ("ff", "two letters"),
        ("日本", "three bytes each"),
        ("🔑", "four bytes"),
        ("\U0010fffd", "the last but two"),
        ("-dash", "begins like an option"),
        ("a b", "a space"),
        ("a", "one byte"),
        ("A", "a capital"),
        ("aa", "longer"),
        ("/../x", "like a path"),
    ]
    vault = vault_with_items("names", pairs)
    for service in ["é", "e\u0301", "a", "🔑"]:
        vault.store("a", f"of {service}", service=service)
    catalog.vault(
        "names",
        "Services and keys that only their bytes tell apart: composed, decomposed, of one to four bytes.",
        named("metadata: service, key", "header: item, service tag"),
        vault.file(),
        [opens(vault)],
    )
    vault = Vault("names-longest", devices=0)
    vault.store("k" * 1024, "all ASCII")
    vault.store("🔑" * 256, "four bytes each", service="s" * 1024)
    vault.store("é" * 512, "", service="日" * 341 + "x")
    catalog.vault(
        "names-longest",
        "Services and keys of 1,024 bytes.",
        named("metadata: service, key", "header: m"),
        vault.file(),
        [opens(vault)],
    )
    # Both names together give the same text.
    vault = Vault("names-split", devices=0)
    vault.store("bc", "a, bc", service="a")
    vault.store("c", "ab, c", service="ab")
    catalog.vault(
        "names-split",
        "Two items whose service and key are the same text when they are joined.",
        named("header: item, service tag"),
        vault.file(),
        [opens(vault)],
    )


def origins(catalog):
    vault = Vault("origins", devices=1)
    for policy, name in [(2, "portable"), (4, "here")]:
        vault.store(f"{name}: owner", "fake", policy=policy)
        vault.store(f"{name}: no proof", "fake", policy=policy, marked=True)
        others = vault.items["default", f"{name}: owner"].proof
        for about, proof in [("another item's", others), ("zeros", bytes(16))]:

            def with_proof(item, proof=proof):
                item.proof = proof
                return items.metadata(item)

            vault.store(f"{name}: {about}", "fake", policy=policy, marked=True, plain_metadata=with_proof)
    catalog.vault(
        "origins",
        "Items whose policy the owner chose, or a session without the root key: no proof, or not this item's.",
        named(
            "metadata: whether there is a proof of the policy, proof of the policy",
            "key: proof key",
            "key: proof of the policy",
        ),
        vault.file(),
        [opens(vault, state="here", device=0)],
        {"here": vault.state()},
    )


def details(catalog):
    vault = Vault("details", devices=0)
    vault.store("neither", "fake")
    vault.store("label", "fake", label="Größe")
    vault.store("empty label", "fake", label="")
    vault.store("expiry", "fake", expires=1_900_000_000_123)
    vault.store("attributes", "fake", attributes={"host": "example.com", "empty": "", "é": "e\u0301", "e\u0301": "é"})
    vault.store("all", "fake", label="🔑", expires=1, attributes={"a": "b"}, created=NOON - 1, modified=NOON + 1)
    catalog.vault(
        "details",
        "With and without label, expiry and attributes.",
        named(
            "metadata: metadata length, created, modified, whether there is an expiry, expiry",
            "metadata: whether there is a label, label, number of attributes, zeros up to the padded length",
        ),
        vault.file(),
        [opens(vault)],
    )
    vault = Vault("times", devices=0)
    for number, time in enumerate([0, 1, -1, -62_135_596_800_000, FAR, 1_234_567_890_123, -1_500]):
        vault.store(f"{number}", "fake", created=time, modified=time, expires=time)
    catalog.vault(
        "times",
        "Times before 1970 and at both ends of the years that a writer takes.",
        named("metadata: created, modified, expiry"),
        vault.file(),
        [opens(vault)],
    )
    vault = Vault("attributes-most", devices=0)
    sizes = [(1022, 1024)] * 8 + [(400, 300)] * 56
    pairs = {f"{number:02}" + "n" * name: "v" * value for number, (name, value) in enumerate(sizes)}
    vault.store("most", "fake", attributes=pairs, label="l" * 1024)
    catalog.vault(
        "attributes-most",
        "64 attributes of nearly 60 KiB, and a label of 1,024 bytes.",
        named("metadata: number of attributes, label, metadata length", "header: m"),
        vault.file(),
        [opens(vault)],
    )
