"""Devices, revocations, and the anchors that tell an older copy."""

from writer.catalog import NO_DEVICE, fails, method, named, opens
from writer.fields import i64
from writer.keys import KEY_FILE, PASSPHRASE, RECOVERY
from writer.vault import KEY, Vault

OLD, NEW = {"passphrase": "the old fake passphrase"}, {"passphrase": "the new fake passphrase"}


def add(catalog):
    devices(catalog)
    revoked(catalog)


def filled(name, devices=2, **how):
    vault = Vault(name, devices=devices, **how)
    for policy in [1, 2]:
        vault.store(f"portable {policy}", f"fake {policy}", policy=policy)
    for number, device in enumerate(vault.devices):
        for policy in [3, 4] + [5] * (vault.keybag.slots[0].kind == PASSPHRASE):
            vault.store(f"device {number} {policy}", f"fake {policy}", policy=policy, device=device)
    return vault


def devices(catalog):
    vault = filled("devices")
    states = {"first": vault.state(0), "second": vault.state(1)}
    catalog.vault(
        "devices",
        "Two devices, each with items of its own; opened on either and on a third.",
        named(
            "class set: device's identifier, enrolled, number of classes", "header: set tag", "key: class wrap, device"
        ),
        vault.file(),
        [opens(vault, state="first", device=0), opens(vault, state="second", device=1), opens(vault)],
        states,
    )
    gone = vault.keybag.sets.pop()
    vault.keybag.removed.append(gone.identifier + i64(gone.enrolled))
    vault.change_keybag()
    vault.items = {name: item for name, item in vault.items.items() if item.of.device is not vault.devices[1]}
    catalog.vault(
        "device-removed",
        "The second device was removed: its items do not exist, though their frames are there.",
        named(
            "keybag: number of class sets, number of removed devices, removed devices",
            "header: set tag",
        ),
        vault.file(),
        [opens(vault, state="first", device=0), opens(vault, state="second"), opens(vault)],
        states,
    )
    vault = Vault("devices-most", devices=7)
    for number, device in enumerate(vault.devices):
        vault.store(f"of {number}", "fake", policy=3 + number % 2, device=device)
    catalog.vault(
        "devices-most",
        "Eight class sets, as many as there may be.",
        named("keybag: number of class sets", "header: set tag"),
        vault.file(),
        [opens(vault, state=f"device-{number}", device=number) for number in [0, 6]],
        {f"device-{number}": vault.state(number) for number in [0, 6]},
    )


def revoked(catalog):
    vault = filled("revoked", kind=PASSPHRASE, secret=OLD["passphrase"].encode())
    vault.keybag.add_slot(KEY_FILE, KEY)
    vault.change_keybag()
    here, there = (vault.state(number, pepper=True) for number in [0, 1])
    no_passcode = {5: "notPermitted"}
    fields = named(
        "class set: mark of older roots, older roots",
        "key: older root",
        "key: succession key",
        "key: succession",
        "key: root name",
        "keybag: number of former roots, succession of R, succession of A",
        "class: class version",
        "header: class-key version",
    )
    before = {"before": vault.state(0, vault.anchor(), pepper=True)}
    catalog.vault(
        "revoked-before",
        "A vault before its passphrase is revoked.",
        fields,
        vault.file(),
        [opens(vault, state="before", device=0)],
        before,
    )
    old_file, former = vault.file(), vault.keybag.root_names()

    vault.keybag.slots[0].secret = NEW["passphrase"].encode()
    vault.keybag.slots[0].identifier, vault.keybag.next_slot = vault.keybag.next_slot, vault.keybag.next_slot + 1
    vault.keybag.renew_roots(vault.devices[0])
    vault.change_keybag()
    new = vault.keybag.slots[0].identifier
    states = {"here": here, "there": there}

    def openings():
        return [
            opens(vault, new, state="here", device=0),
            opens(vault, 2, state="here", device=0, lacks=no_passcode),
            opens(vault, new, state="there", device=1),
            opens(vault, 2, state="there", device=1, lacks=no_passcode),
            opens(vault, new, lacks=NO_DEVICE),
            fails("wrongPassphrase", by=OLD, state="here"),
        ]

    catalog.vault(
        "revoked-not-resealed",
        "The passphrase was revoked; items are still under older keys, and the other device's set under older roots.",
        fields,
        vault.file(),
        openings(),
        states,
    )
    vault.store("portable 1", "stored since")
    vault.compact(reseal=True)
    for one in vault.keybag.sets[:2]:
        one.classes = [keys for keys in one.classes if keys is one.newest(keys.policy)]
    vault.change_keybag()
    anchored = {"anchored": vault.state(0, vault.anchor(), pepper=True)}
    catalog.vault(
        "revoked",
        "The same, with its items sealed anew and the older keys gone.",
        fields,
        vault.file(),
        openings() + [opens(vault, new, state=state, device=0) for state in ["anchored", "former"]],
        states | anchored | {"former": vault.state(0, vault.anchor(roots=former), pepper=True)},
    )
    rewritten = filled("revoked", kind=PASSPHRASE, secret=OLD["passphrase"].encode())
    rewritten.keybag.add_slot(KEY_FILE, KEY)
    rewritten.change_keybag()
    if rewritten.file() != old_file:
        raise ValueError("writing the same vault again gave another")
    catalog.vault(
        "revoked-old-copy",
        "The copy from before: it opens with the old passphrase where nothing is known of the newer one, and not "
        "where that was seen.",
        named("anchor slot: epoch number, keybag generation"),
        old_file,
        [
            opens(rewritten, state="here", device=0),
            fails("rolledBack", by=OLD, state="anchored"),
            fails("wrongPassphrase", by=NEW, state="here"),
        ],
        {"here": here} | anchored,
    )

    vault.keybag.put_back_roots()
    vault.change_keybag()
    catalog.vault(
        "revoked-put-back",
        "A newer keybag under the roots from before, in the log with all commits. An attacker with those roots wrote it.",
        fields,
        vault.file(),
        [opens(vault, new, state="here", device=0), fails("forked", by=NEW, state="anchored")]
        + [fails("forked", by=method(KEY_FILE, KEY), state="anchored")],
        {"here": here} | anchored,
    )

    vault = filled("revoked-twice")
    vault.keybag.add_slot(RECOVERY, bytes(range(20)))
    vault.change_keybag()
    for _ in range(2):
        vault.keybag.renew_roots(vault.devices[0])
        vault.change_keybag()
    vault.store("under version 3", "fake", policy=3)
    catalog.vault(
        "revoked-twice",
        "New roots twice: the other device's set is still under the first ones, which came along.",
        fields,
        vault.file(),
        [
            opens(vault, state="here", device=0),
            opens(vault, state="there", device=1),
            opens(vault, 2, state="there", device=1),
        ],
        {"here": vault.state(0), "there": vault.state(1)},
    )
    vault.keybag.sets[2].older[0] = vault.keybag.sets[2].older[0][:-1] + b"\0"
    vault.change_keybag()
    catalog.vault(
        "revoked-damaged-older-root",
        "An older root of the other device's set does not open: nobody but that device looks at it.",
        fields,
        vault.file(),
        [opens(vault, state="here", device=0), fails("corrupt", state="there")],
        {"here": vault.state(0), "there": vault.state(1)},
    )
