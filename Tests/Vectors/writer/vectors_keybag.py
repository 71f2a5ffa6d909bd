"""Keybags: two copies, the changes between them, and every field otherwise than it should be."""

from writer.catalog import fails, method, named, opens
from writer.fields import u8, u16, u32, u64
from writer.keys import KEY_FILE, PASSPHRASE
from writer.vault import KEY, Vault

GIBIBYTE = 1 << 30


def add(catalog):
    forged(catalog)
    unauthentic(catalog)


def forged(catalog):
    """Copies whose codes and checksum fit and that break a bound or are a newer program's."""
    key_file, passphrase = {}, {"kind": PASSPHRASE, "secret": b"fake"}
    newer, wrong = "unsupportedFormat", "corrupt"
    cases = [
        ("version", "keybag: version", newer, key_file, {"version": u16(2)}),
        (
            "kept-101", "keybag: how many replaced values of an item compaction keeps", newer, key_file,
            {"kept_values": u16(101)},
        ),
        ("removed-17", "keybag: number of removed devices", newer, key_file, {"removed": u16(17)}),
        (
            "removed-portable", "keybag: removed devices", wrong, key_file,
            {"removed": u16(1), "removed_devices": bytes(24)},
        ),
        ("former-9", "keybag: number of former roots", newer, key_file, {"former_roots": u16(9)}),
        ("next-slot", "keybag: number that the next slot gets", wrong, key_file, {"next_slot": u32(1)}),
        ("slots-0", "keybag: number of slots", wrong, key_file, {"slots": u16(0)}),
        ("slots-65535", "keybag: number of slots", wrong, key_file, {"slots": u16(65535)}),
        ("kind-0", "slot: kind", newer, key_file, {"slot_1_kind": u8(0)}),
        ("kind-5", "slot: kind", newer, key_file, {"slot_1_kind": u8(5)}),
        ("scope-0", "slot: scope", newer, key_file, {"slot_1_scope": u8(0)}),
        ("scope-3", "slot: scope", newer, key_file, {"slot_1_scope": u8(3)}),
        ("key-file-cost", "slot: Argon2id passes", wrong, key_file, {"slot_1_passes": u32(1)}),
        ("key-file-memory", "slot: memory in bytes", wrong, key_file, {"slot_1_memory": u64(8192)}),
        ("passes-0", "slot: Argon2id passes", wrong, passphrase, {"slot_1_passes": u32(0)}),
        ("passes-13", "slot: Argon2id passes", wrong, passphrase, {"slot_1_passes": u32(13)}),
        ("passes-absurd", "slot: Argon2id passes", wrong, passphrase, {"slot_1_passes": u32((1 << 32) - 1)}),
        ("memory-small", "slot: memory in bytes", wrong, passphrase, {"slot_1_memory": u64(8191)}),
        ("memory-large", "slot: memory in bytes", wrong, passphrase, {"slot_1_memory": u64(2 * GIBIBYTE + 1)}),
        ("memory-absurd", "slot: memory in bytes", wrong, passphrase, {"slot_1_memory": u64((1 << 64) - 1)}),
        ("roots-short", "slot: length of the sealed roots", wrong, key_file, {"slot_1_length": u16(71)}),
        ("roots-long", "slot: length of the sealed roots", wrong, key_file, {"slot_1_length": u16(105)}),
        ("sets-0", "keybag: number of class sets", wrong, key_file, {"sets": u16(0)}),
        ("sets-9", "keybag: number of class sets", wrong, key_file, {"sets": u16(9)}),
        (
            "portable-older",
            "class set: mark of older roots",
            wrong,
            key_file,
            {"set_1_older": u8(1), "set_1_older_roots": bytes(144)},
        ),
        ("older-3", "class set: mark of older roots", newer, key_file, {"set_1_older": u8(3)}),
        ("classes-17", "class set: number of classes", wrong, key_file, {"set_1_count": u8(17)}),
        ("set-twice", "class set: device's identifier", wrong, key_file, {"set_2_device": bytes(16)}),
    ]
    for name, how in [("keybag", key_file), ("keybag-passphrase", passphrase)]:
        vault = Vault(name, **how).finished()
        catalog.vault(
            name,
            "A new vault of one device, which others are made of.",
            named("class set: number of classes"),
            vault.file(),
            [opens(vault)],
        )
    vault = Vault("keybag-kept", kept_values=100)
    vault.store("key", "fake")
    vault.store("key", "newer")
    catalog.vault(
        "keybag-kept",
        "A vault that keeps a hundred replaced values of each item.",
        named("keybag: how many replaced values of an item compaction keeps"),
        vault.file(),
        [opens(vault)],
    )
    vault = Vault("keybag").finished()
    vault.copies = [vault.keybag.copy(former_roots=u16(1), successions=bytes(144))] * 2
    catalog.vault(
        "keybag-succession-unsealed",
        "A keybag whose codes fit, with one former root and successions that do not open.",
        named("keybag: number of former roots, succession of R, succession of A"),
        vault.file(),
        [fails("corrupt", by=method(KEY_FILE, KEY))],
        of="keybag",
    )
    for name, field, code, how, forge in cases:
        base = "keybag-passphrase" if how is passphrase else "keybag"
        vault = Vault(base, **how).finished()
        vault.copies = [vault.keybag.copy(**forge)] * 2
        catalog.vault(
            f"keybag-{name}",
            "A keybag whose codes fit, with: "
            + ", ".join(
                f"{part.replace('_', ' ')} {int.from_bytes(value, 'little'):,}" for part, value in forge.items()
            )
            + ".",
            named(field),
            vault.file(),
            [fails(code, "open", by=method(how.get("kind", KEY_FILE), how.get("secret", KEY)))],
            of=base,
        )
    nine = Vault("keybag-passphrase", kind=PASSPHRASE, secret=b"fake").finished()
    for _ in range(8):
        nine.keybag.add_slot(PASSPHRASE, b"fake")
    work = Vault("keybag-passphrase", kind=PASSPHRASE, secret=b"fake").finished()
    for slot in [work.keybag.slots[0], work.keybag.add_slot(PASSPHRASE, b"fake")]:
        slot.passes, slot.memory = 12, GIBIBYTE + 1
    twice = Vault("keybag").finished()
    twice.keybag.add_slot(KEY_FILE, b"2" * 32).identifier = 1
    seventeen = Vault("keybag").finished()
    for _ in range(16):
        seventeen.keybag.add_slot(KEY_FILE, b"2" * 32)
    for name, about, field, vault in [
        ("nine-passphrases", "Nine passphrases.", "slot: kind", nine),
        ("work", "The passphrases together cost 24 bytes more than 24 GiB.", "slot: memory in bytes", work),
        ("slot-twice", "Two slots have the same number.", "slot: identifier", twice),
        ("seventeen-slots", "Seventeen slots.", "keybag: number of slots", seventeen),
    ]:
        vault.copies = [vault.keybag.copy()] * 2
        catalog.vault(
            f"keybag-{name}",
            f"A keybag whose codes fit. {about}",
            named(field),
            vault.file(),
            [fails("corrupt", "open")],
            of="keybag-passphrase" if vault in (nine, work) else "keybag",
        )


def unauthentic(catalog):
    """One field otherwise, with a checksum that fits and codes that do not."""
    for name, field, part, code, at in [
        ("vault", "keybag: vault identifier", "vault", "wrongPassphrase", "unlock"),
        ("generation", "keybag: keybag generation", "generation", "corrupt", "unlock"),
        ("salt", "slot: salt", "slot 1 salt", "wrongPassphrase", "unlock"),
        ("commitment", "slot: commitment", "slot 1 commitment", "wrongPassphrase", "unlock"),
        ("created", "slot: created", "slot 1 created", "corrupt", "unlock"),
        ("roots", "slot: sealed roots", "slot 1 roots", "corrupt", "unlock"),
        ("device", "class set: device's identifier", "set 2 device", "corrupt", "unlock"),
        ("enrolled", "class set: enrolled", "set 2 enrolled", "corrupt", "unlock"),
        ("policy", "class: policy", "set 1 class 1 policy", "corrupt", "unlock"),
        ("class-version", "class: class version", "set 1 class 2 version", "corrupt", "unlock"),
        ("class", "class: metadata key", "set 1 class 1 keys", "corrupt", "unlock"),
        ("log-key", "keybag: log key", "log key", "corrupt", "unlock"),
    ]:
        vault = Vault("keybag").finished()
        place = vault.keybag.fields().places[part] + (
            30 if part in ("log key", "slot 1 roots", "set 1 class 1 keys") else 0
        )
        copy = vault.copies[0]
        vault.copies = [vault.keybag.changed_copy(place, bytes([copy[place] ^ 2]))] * 2
        catalog.vault(
            f"changed-{name}",
            f"One bit of a keybag's field was changed: {part}; the checksum fits.",
            named(field),
            vault.file(),
            [fails(code, at, by=method(KEY_FILE, KEY))],
            of="keybag",
        )
    for name, field, behind in [
        ("root-code", "keybag: root code", 0),
        ("holder-code", "keybag: holder code", 32),
        ("zeros", "keybag: zeros", 64),
    ]:
        vault = Vault("keybag").finished()
        place = len(vault.keybag.fields().finish()) + behind
        vault.copies = [vault.keybag.changed_copy(place, bytes([vault.copies[0][place] ^ 2]))] * 2
        catalog.vault(
            f"changed-{name}",
            f"One bit of a keybag was changed in its {name.replace('-', ' ')}; the checksum fits.",
            named(field),
            vault.file(),
            [fails("corrupt", "open" if name == "zeros" else "unlock")],
            of="keybag",
        )
