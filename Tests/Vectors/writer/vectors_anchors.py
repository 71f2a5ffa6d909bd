"""The anchors that tell an older copy."""

from writer.anchor import whole
from writer.catalog import fails, named, opens
from writer.keys import KEY_FILE
from writer.vault import Vault

OLD, NEW = {"passphrase": "the old fake passphrase"}, {"passphrase": "the new fake passphrase"}


def add(catalog):
    anchors(catalog)
    in_part(catalog)


def anchors(catalog):
    vault = Vault("anchors", devices=0)
    vault.store("first", "fake")
    middle, middle_chain = vault.anchor(counter=1), vault.log.chain
    vault.store("second", "fake")
    vault.keybag.add_slot(KEY_FILE, b"2" * 32)
    vault.change_keybag()
    vault.compact()
    vault.store("third", "fake")
    earlier = vault.anchor(counter=1)
    vault.store("fourth", "fake")
    log = vault.log
    own, other = vault.keybag.root_names(), b"2" * 32
    coming = {"epoch": 1, "identifier": bytes(16), "coming": (log.epoch, log.identifier)}
    slots = {
        "last": (vault.anchor(), None),
        "earlier": (earlier, None),
        "genesis": (vault.anchor(chain=log.frames[0].chain, sequence=2), None),
        "before-compaction": (middle, None),
        "other-chain": (vault.anchor(chain=bytes(32)), "forked"),
        "other-chain-later-sequence": (vault.anchor(chain=bytes(32), sequence=log.sequence + 1), "rolledBack"),
        "other-epoch": (vault.anchor(identifier=bytes(16)), "forked"),
        "later-epoch": (vault.anchor(epoch=log.epoch + 1), "rolledBack"),
        "earlier-epoch": (vault.anchor(epoch=log.epoch - 1, chain=bytes(32), identifier=bytes(16)), "forked"),
        "earlier-epoch-later-sequence": (vault.anchor(epoch=log.epoch - 1, sequence=log.sequence + 1), "forked"),
        "earlier-epoch-other-sequence": (vault.anchor(epoch=1, identifier=bytes(16), sequence=2, chain=middle_chain), "forked"),
        "coming": (vault.anchor(epoch=1, identifier=bytes(16), coming=(log.epoch, log.identifier), file=(7, 9)), None),
        "coming-other": (vault.anchor(epoch=1, identifier=bytes(16), coming=(log.epoch, bytes(16))), "forked"),
        "later-sequence": (vault.anchor(sequence=log.sequence + 9), None),
        "newer-keybag": (vault.anchor(keybag_generation=vault.keybag.generation + 1), "rolledBack"),
        "older-keybag": (vault.anchor(keybag_generation=1), None),
        "no-roots": (vault.anchor(roots=bytes(32)), None),
        "other-root": (vault.anchor(roots=b"1" * 16 + own[16:]), "forked"),
        "other-holder-root": (vault.anchor(roots=own[:16] + b"1" * 16), "forked"),
        "coming-roots": (vault.anchor(roots=other, coming_roots=own, **coming), None),
        "coming-other-roots": (vault.anchor(coming_roots=other, **coming), "forked"),
    }
    states = {name: vault.state(None, anchor) for name, (anchor, _) in slots.items()}
    openings = [fails(code, state=name) if code else opens(vault, state=name) for name, (_, code) in slots.items()]
    name = f"{vault.keybag.vault.hex()}.anchor"
    wrong = vault.anchor(counter=4, chain=bytes(32))

    def both(first, second, code=None):
        states[f"slots-{len(states)}"] = {name: first + second}
        state = f"slots-{len(states) - 1}"
        openings.append(fails(code, state=state) if code else opens(vault, state=state))

    flip = lambda slot, place: slot[:place] + bytes([slot[place] ^ 1]) + slot[place + 1 :]
    both(vault.anchor(counter=6), wrong)  # the greater counter counts
    both(wrong, vault.anchor(counter=3), "forked")
    both(flip(wrong, 0), vault.anchor(counter=3))  # no anchor slot
    both(flip(wrong, 100), vault.anchor(counter=3))  # its checksum is wrong
    both(flip(wrong, 230), vault.anchor(counter=3))  # the same for this one
    both(flip(wrong, 300), vault.anchor(counter=3))  # one of the zeros is not zero
    foreign = whole(flip(vault.anchor(counter=8), 200)[:224])
    both(foreign, vault.anchor(counter=3), "forked")  # it belongs to another log key
    both(foreign, vault.anchor(counter=9))
    both(foreign, b"", "forked")
    both(foreign, flip(vault.anchor(counter=3), 100), "forked")
    both(flip(wrong, 9), flip(wrong, 40))  # neither slot is whole, so nothing is known
    both(wrong, b"", "forked")
    both(wrong[:511], b"")
    both(b"", b"")
    catalog.vault(
        "anchors",
        "One vault and anchors of every kind: as it is, older, newer, of other epochs, damaged, in one slot or two.",
        named(
            "anchor slot: TVANCHR1, counter, epoch number, epoch identifier, sequence of the vault",
            "anchor slot: chain value of the last frame, keybag generation, code, checksum, zeros",
            "anchor slot: name of R, name of A, coming name of R, coming name of A",
            "anchor slot: device of the file, inode of the file, coming epoch's number, coming epoch's identifier",
            "genesis: epoch number",
            "ancestry: number of commits, flags, sequence of a commit, tag of a commit",
        ),
        vault.file(),
        openings,
        states,
    )
    vault = Vault("anchor-reaches", devices=0)
    vault.store("first", "fake")
    before = vault.anchor()
    frame = vault.store("second", "fake " * 200)
    reaching, file = vault.anchor(), bytearray(vault.file())
    file[frame.end - 16 : frame.end] = bytes(16)
    del vault.items["default", "second"]
    vault.log.sequence -= 1
    catalog.vault(
        "anchor-reaches",
        "The last frame's end is zeros: a torn write, unless the anchor says that it was there.",
        named("anchor slot: chain value of the last frame"),
        bytes(file),
        [
            opens(vault, state="before", torn=True),
            fails("corrupt", state="reaches", offset=frame.offset),
            opens(vault, torn=True),
        ],
        {"before": vault.state(None, before), "reaches": vault.state(None, reaching)},
    )


def in_part(catalog):
    """A merge left a value in its copy: the log does not descend from the copy."""
    vault = Vault("commits-in-part", devices=0)
    vault.store("first", "fake")
    whole = vault.anchor(counter=1)
    copied, chain = 9, bytes(range(32))
    item, _ = vault.log.name("default", "of another device")
    vault.compact(in_part=[(copied, chain[:8])], left=[(item, chain[:8])])
    vault.store("second", "fake")
    slots = {
        "last": (vault.anchor(), None),
        "whole": (whole, None),
        "in-part": (vault.anchor(epoch=1, identifier=bytes(16), sequence=copied, chain=chain), "forked"),
    }
    catalog.vault(
        "commits-in-part",
        "An ancestry frame that lists a copy's commit in part, and a left value.",
        named(
            "ancestry: number of commits in part, number of left values",
            "ancestry: sequence of a commit in part, tag of a commit in part, item of a left value, tag of a left value",
        ),
        vault.file(),
        [fails(code, state=name) if code else opens(vault, state=name) for name, (_, code) in slots.items()],
        {name: vault.state(None, anchor) for name, (anchor, _) in slots.items()},
    )
