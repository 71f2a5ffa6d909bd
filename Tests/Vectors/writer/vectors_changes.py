"""What becomes of items: replaced, deleted, erased; their policies; commits and groups."""

from writer import items, log
from writer.catalog import NO_DEVICE, named, opens
from writer.keys import KEY_FILE, PASSPHRASE
from writer.vault import KEY, Vault


def add(catalog):
    changes(catalog)
    policies(catalog)
    groups(catalog)


def changes(catalog):
    vault = Vault("changes", devices=0)
    for key in ["kept", "replaced", "deleted", "renamed", "again", "moved to another class"]:
        vault.store(key, f"first of {key}")
    vault.store("replaced", "second")
    vault.delete("deleted")
    vault.log.next_group()
    number = vault.log.sequence + 1
    first = vault.items["default", "renamed"].created
    vault.delete("renamed", alone=False, ends=False, generation=number)
    vault.store("new name", "first of renamed", alone=False, generation=number, created=first)
    vault.delete("again", with_names=False)
    vault.store("again", "second")
    vault.store("moved to another class", "fake", policy=2)
    catalog.vault(
        "changes",
        "Items replaced, deleted, renamed in one commit of two frames, deleted without names and stored again.",
        named("header: type, end of the commit, policy, generation, chain value of the frame before"),
        vault.file(),
        [opens(vault)],
    )
    vault = Vault("erased", devices=0)
    for key in ["whole", "sectors", "live"]:
        vault.store(key, bytes(range(256)) * 8)
    first = {frame.item: frame for frame in vault.log.frames}
    vault.checkpoint()
    vault.delete("whole")
    vault.delete("sectors")
    vault.checkpoint()
    file = bytearray(vault.file())
    whole, sectors = (first[vault.log.name("default", key)[0]] for key in ["whole", "sectors"])
    for frame, start, end in [
        (whole, whole.offset + log.FRONT, whole.end - log.TAIL),
        (sectors, (sectors.offset + log.FRONT + 511) // 512 * 512, (sectors.end - log.TAIL) // 512 * 512),
    ]:
        file[start:end] = bytes(end - start)
    catalog.vault(
        "erased",
        "Values of deleted items, overwritten with zeros: one wholly, one by whole sectors.",
        named("frame: metadata, body", "header: content digest"),
        bytes(file),
        [opens(vault)],
    )


def policies(catalog):
    vault = Vault("policies", kind=PASSPHRASE, secret=b"a fake passphrase")
    for policy, name in items.NAMES.items():
        vault.store(name, f"fake {policy}", policy=policy)
    vault.keybag.add_slot(KEY_FILE, KEY)
    vault.change_keybag()
    here = vault.state(pepper=True, anchor=vault.anchor())
    device = next(name for name in here if name.endswith(".device"))
    pepper = next(name for name in here if name.endswith(".pepper"))
    changed = lambda name, place: here | {name: here[name][:place] + b"\0" + here[name][place + 1 :]}
    states = {
        "here": here,
        "without-pepper": {name: data for name, data in here.items() if name != pepper},
        "another-pepper": changed(pepper, 5),
        "short-pepper": here | {pepper: here[pepper][:31]},
        "damaged-device": changed(device, 40),
        "short-device": here | {device: here[device][:71]},
    }
    one = {"state": "here", "device": 0}
    no_pepper = {5: "wrongDevice"}
    catalog.vault(
        "policies",
        "An item of each policy; with the device's files, without them, and with each of them damaged.",
        named(
            "class: policy, class version, metadata key",
            "header: policy, class-key version, set tag",
            "class set: device's identifier, enrolled, mark of older roots, number of classes",
            "key: class wrap, portable",
            "key: class wrap, device",
            "key: class wrap, passcode",
            "key: root R, passcode root P",
            "device file: TVDEVIC1, device identifier, device key, checksum",
        ),
        vault.file(),
        [
            opens(vault, **one),
            opens(vault, **one, locks=True),
            opens(vault, 2, **one, lacks={5: "notPermitted"}),
            opens(vault, lacks=NO_DEVICE),
            opens(vault, 2, lacks=NO_DEVICE),
            opens(vault, state="without-pepper", device=0, lacks=no_pepper),
            opens(vault, state="another-pepper", device=0, lacks=no_pepper),
            opens(vault, state="short-pepper", device=0, lacks=no_pepper),
            opens(vault, state="damaged-device"),
            opens(vault, state="short-device"),
        ],
        states,
    )
    vault.keybag.slots.pop(0)
    left = vault.keybag.sets[1].classes.pop()
    vault.change_keybag()
    elsewhere = opens(vault, 2, lacks=NO_DEVICE)
    del vault.items["default", items.NAMES[5]]
    catalog.vault(
        "policies-no-passphrase",
        "The last passphrase was removed: on its device the item that needed one does not "
        "exist, though its frame is there.",
        named("slot: kind", "header: policy"),
        vault.file(),
        [opens(vault, 2, state="here", device=0), elsewhere],
        {"here": vault.state()},
    )
    vault.keybag.sets[1].classes.append(left)
    vault.change_keybag()
    catalog.vault(
        "policies-class-left",
        "The same, with the class that needed a passphrase still in the keybag.",
        named("class: policy"),
        vault.file(),
        [opens(vault, 2, state=state, device=0) for state in ["here", "with-pepper"]],
        {"here": vault.state(), "with-pepper": vault.state(pepper=True)},
    )


def groups(catalog):
    vault = Vault("groups", devices=0)
    vault.log.next_group()
    for key in "abcd":
        vault.store(key, f"fake {key}", alone=False)
    vault.log.next_group()
    number = vault.log.sequence + 1
    for key in "efg":
        vault.store(key, f"fake {key}", alone=False, generation=number, ends=key == "g")
    vault.store("h", "fake", alone=False)
    catalog.vault(
        "groups",
        "Two groups: four commits of one frame; one commit of three frames and one of one.",
        named("header: end of the commit, group start, generation"),
        vault.file(),
        [opens(vault)],
    )
    vault = Vault("generations", devices=0)
    vault.store("small", "fake")
    vault.store("largest", "fake", generation=(1 << 53) - 1)
    catalog.vault(
        "generations",
        "Generations 1 and 2^53 − 1.",
        named("header: generation"),
        vault.file(),
        [opens(vault)],
    )
