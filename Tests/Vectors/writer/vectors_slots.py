"""What opens a vault: kinds of slots, scopes, costs, and several of them."""

from writer.catalog import fails, method, named, opens
from writer.keys import AFTER_FIRST_UNLOCK, KEY_FILE, KEYRING, PASSPHRASE, RECOVERY
from writer.recovery_text import write
from writer.vault import KEY, Vault

RECOVERY_KEY = bytes(range(3, 43, 2))
HOLDER = {1: "notPermitted", 3: "notPermitted", 5: "notPermitted"}


def add(catalog):
    passphrases(catalog)
    recovery(catalog)
    others(catalog)
    scopes(catalog)
    many(catalog)


def one_item(name, **slot):
    vault = Vault(name, devices=0, **slot)
    vault.store("k", "fake")
    return vault


def passphrases(catalog):
    vault = one_item("passphrase", kind=PASSPHRASE, secret="a fake passphrase, née é".encode(), created=-1)
    typed = lambda text: {"passphrase": text}
    composed = typed("a fake\u00a0passphrase, ne\u0301e e\u0301")
    wrong = ["a fake passphrase, née é ", "A fake passphrase, née é", "x"]
    catalog.vault(
        "passphrase",
        "A passphrase that is not ASCII, at the least cost; others that nearly are it.",
        named(
            "slot: identifier, kind, scope, created, Argon2id passes, memory in bytes, salt, commitment",
            "slot: sealed roots, length of the sealed roots",
            "key: slot key",
        ),
        vault.file(),
        [opens(vault), opens(vault, by=composed)]
        + [fails("wrongPassphrase", by=typed(each)) for each in wrong]
        + [fails("wrongPassphrase")],
    )
    vault = one_item("passphrase-raw", kind=PASSPHRASE, secret="ne\u0301e\u3000fake".encode())
    catalog.vault(
        "passphrase-raw",
        "A passphrase that was hashed as it was typed, in Normalization Form D and with another space.",
        named("key: slot key"),
        vault.file(),
        [opens(vault), fails("wrongPassphrase", by=typed("n\u00e9e fake"))],
    )
    vault = one_item("passphrase-bytes", kind=PASSPHRASE, secret=b"not UTF-8: \xff\xfe\x80 ")
    catalog.vault(
        "passphrase-bytes", "A passphrase that is not UTF-8.", named("key: slot key"), vault.file(), [opens(vault)]
    )
    for name, passes, memory in [("usual", 3, 64 << 20), ("passes", 12, 8192), ("uneven", 2, 10_000_000)]:
        vault = one_item(f"cost-{name}", kind=PASSPHRASE, secret=b"fake", passes=passes, memory=memory)
        catalog.vault(
            f"cost-{name}",
            f"A passphrase that costs {passes} passes over {memory:,} bytes.",
            named("slot: Argon2id passes, memory in bytes"),
            vault.file(),
            [opens(vault)],
        )


def recovery(catalog):
    vault = one_item("recovery-key", kind=RECOVERY, secret=RECOVERY_KEY)
    written = write(RECOVERY_KEY)
    forms = [
        written.lower(),
        written.replace("-", ""),
        written.replace("-", " "),
        f" {written}-",
        written.replace("1", "l").replace("0", "o"),
        written.replace("1", "I").replace("0", "O"),
    ]
    exchanged = written[:7] + written[8] + written[7] + written[9:]
    mistyped = ("Z" if written[0] != "Z" else "Y") + written[1:]
    openings = [opens(vault)]
    openings += [opens(vault, by={way: form}) for form in forms for way in ["recoveryKey", "passphrase"]]
    openings += [
        fails("wrongPassphrase", by={way: form})
        for form in [exchanged, mistyped]
        for way in ["recoveryKey", "passphrase"]
    ]
    openings += [
        fails("wrongPassphrase", by={"recoveryKey": write(bytes(20))}),
        fails("wrongPassphrase", by={"passphrase": written[:30]}),
    ]
    catalog.vault(
        "recovery-key",
        "A recovery key, in all the ways it may be typed, and mistyped.",
        named("slot: kind, commitment", "key: slot key"),
        vault.file(),
        openings,
    )
    # The text also works as a passphrase, if a slot of kind 1 has it.
    vault = one_item("recovery-key-as-passphrase", kind=PASSPHRASE, secret=written.encode())
    vault.keybag.add_slot(RECOVERY, bytes(20))
    vault.change_keybag()
    catalog.vault(
        "recovery-key-as-passphrase",
        "A passphrase that is the text of a recovery key, of which this vault has another.",
        named("slot: kind"),
        vault.file(),
        [opens(vault), opens(vault, 2), opens(vault, 2, by={"passphrase": write(bytes(20))})],
    )


def others(catalog):
    vault = one_item("keyring", kind=KEYRING, secret=bytes(range(32)))
    catalog.vault(
        "keyring",
        "A key in a keyring.",
        named("slot: kind", "key: slot key"),
        vault.file(),
        [
            opens(vault),
            fails("wrongPassphrase", by=method(KEYRING, bytes(32))),
            fails("wrongPassphrase", by=method(KEY_FILE, bytes(range(32)))),
        ],
    )
    shortest, longest = b"32 bytes: not a real key at all.", bytes(number % 251 for number in range(4096))
    vault = one_item("key-files", kind=KEY_FILE, secret=shortest)
    vault.keybag.add_slot(KEY_FILE, longest)
    vault.keybag.add_slot(KEY_FILE, shortest + b"\n\0\xff")
    vault.change_keybag()
    catalog.vault(
        "key-files",
        "Key files of 32 and of 4,096 bytes, and one that ends in a newline and bytes that are no text.",
        named("key: slot key", "slot: commitment"),
        vault.file(),
        [opens(vault, 1), opens(vault, 2), opens(vault, 3)],
    )


def scopes(catalog):
    vault = Vault("scopes", kind=PASSPHRASE, secret=b"a fake passphrase")
    for policy in [1, 2, 3, 4, 5]:
        vault.store(f"{policy}", f"fake {policy}", policy=policy)
    bag = vault.keybag
    bag.add_slot(KEY_FILE, KEY, AFTER_FIRST_UNLOCK)
    bag.add_slot(PASSPHRASE, b"another fake passphrase", AFTER_FIRST_UNLOCK)
    bag.add_slot(RECOVERY, RECOVERY_KEY, AFTER_FIRST_UNLOCK)
    bag.add_slot(KEYRING, bytes(range(32)), AFTER_FIRST_UNLOCK)
    bag.add_slot(RECOVERY, RECOVERY_KEY[::-1])
    vault.change_keybag()
    here = {"state": "here", "device": 0}
    openings = [opens(vault, **here)]
    openings += [opens(vault, number, **here, lacks=HOLDER) for number in [2, 3, 4, 5]]
    openings += [
        opens(vault, 2, **here, locks=True, lacks={5: "locked"}),
        opens(vault, 6, **here, lacks={5: "notPermitted"}),
    ]
    catalog.vault(
        "scopes",
        "Slots of each kind that lead to what may be read after the first unlock only.",
        named("slot: scope, sealed roots, length of the sealed roots", "key: holder root A", "key: holder code"),
        vault.file(),
        openings,
        {"here": vault.state(pepper=True)},
    )


def many(catalog):
    vault = one_item("slots-most", kind=PASSPHRASE, secret=b"fake passphrase 1")
    bag = vault.keybag
    for number in range(2, 9):
        bag.add_slot(PASSPHRASE, b"fake passphrase %d" % number)
    for number in range(8):
        bag.add_slot([KEY_FILE, KEYRING, RECOVERY][number % 3], bytes([number]) * [32, 32, 20][number % 3])
    vault.change_keybag()
    catalog.vault(
        "slots-most",
        "Sixteen slots, eight of them passphrases.",
        named("keybag: number of slots, number that the next slot gets", "slot: identifier"),
        vault.file(),
        [opens(vault, number) for number in [1, 2, 8, 9, 10, 11, 16]],
    )
    vault = one_item("slots-numbers")
    vault.keybag.next_slot = (1 << 32) - 2
    vault.keybag.add_slot(KEY_FILE, b"2" * 32)
    vault.keybag.slots.reverse()
    vault.change_keybag()
    catalog.vault(
        "slots-numbers",
        "A slot with a number of nearly 2^32, in front of slot 1.",
        named("slot: identifier", "keybag: number that the next slot gets"),
        vault.file(),
        [opens(vault), opens(vault, (1 << 32) - 2)],
    )
