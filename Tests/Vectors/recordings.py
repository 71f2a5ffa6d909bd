"""The vectors that vaultctl writes."""

from recording import (
    ELSEWHERE,
    FOUR,
    INIT,
    PASSCODE,
    PASSPHRASES,
    PORTABLE,
    Recording,
    THERE,
    WHEN,
    WHEN_HERE,
    WITH_KEY,
    WITH_NEW,
    WITH_PASSPHRASE,
    by,
    four,
    item,
    refused,
    wrong,
)
from writer.catalog import named

RECORDINGS = [
    Recording(
        "vaultctl-empty",
        "A new vault.",
        named("keybag: TKNVAULT"),
        [INIT],
        [by("key", []), by("key", [], state=None), wrong("second")],
    ),
    Recording(
        "vaultctl-items",
        "Items with and without details.",
        named("metadata: service, key, label, expiry, number of attributes", "body: secret"),
        [
            INIT,
            (f"store plain {WITH_KEY}", "fake"),
            (f"store empty {WITH_KEY}", ""),
            (f"store bytes --binary {WITH_KEY}", b"\xff\0\n"),
            (f"store é --service 日本 {WITH_KEY}", "composed"),
            (f"store 'e\u0301' --service 日本 {WITH_KEY}", "decomposed"),
            (
                f"store details --label Größe --attribute host=example.com --attribute empty= --expires "
                f"2040-01-31T12:00:00Z {WITH_KEY}",
                "fake",
            ),
        ],
        [
            by(
                "key",
                [
                    item("bytes", "/wAK", generation=3, base64=True),
                    item(
                        "details",
                        "fake",
                        generation=6,
                        label="Größe",
                        attributes=[["empty", ""], ["host", "example.com"]],
                        expires=2211624000000,
                    ),
                    item("empty", "", generation=2),
                    item("plain", "fake"),
                    item("e\u0301", "decomposed", generation=5, service="日本"),
                    item("é", "composed", generation=4, service="日本"),
                ],
            )
        ],
    ),
    Recording(
        "vaultctl-policies",
        "An item of each policy that needs no passphrase, found here and on another device.",
        named("header: policy, set tag", "class set: device's identifier"),
        [INIT, *four()],
        [by("key", FOUR), by("key", PORTABLE, ELSEWHERE, state=None)],
    ),
    Recording(
        "vaultctl-changes",
        "Items replaced, renamed, changed and deleted: a vault of this size is compacted by a deletion.",
        named("header: generation", "genesis: epoch number, base sequence"),
        [
            INIT,
            *[(f"store {key} {WITH_KEY}", f"first {key}") for key in "abcde"],
            (f"store a {WITH_KEY}", "second"),
            f"rename b moved {WITH_KEY}",
            f"set d --label new --policy {WHEN} {WITH_KEY}",
            f"delete c {WITH_KEY}",
            (f"store c {WITH_KEY}", "again"),
            (f"store last {WITH_KEY}", "fake"),
        ],
        [
            by(
                "key",
                [
                    item("a", "second", generation=6),
                    item("c", "again", generation=10),
                    item("d", "first d", WHEN, 8, label="new"),
                    item("e", "first e", generation=5),
                    item("last", "fake", generation=11),
                    item("moved", "first b", generation=7),
                ],
            )
        ],
    ),
    Recording(
        "vaultctl-compacted",
        "Two epochs, and items stored in each.",
        named("genesis: epoch identifier, base sequence"),
        [INIT, *four(), f"compact {WITH_KEY}", (f"store behind {WITH_KEY}", "fake")],
        [by("key", sorted(FOUR + [item("behind", "fake", generation=5)], key=lambda one: one["key"]))],
    ),
    Recording(
        "vaultctl-import",
        "Five items stored as one commit.",
        named("header: end of the commit"),
        [INIT, f"import lines --format ndjson {WITH_KEY}"],
        [by("key", [item(f"key {number}", f"fake {number}", WHEN, service="imported") for number in range(5)])],
    ),
    Recording(
        "vaultctl-slots",
        "Three key files, of which the second was removed.",
        named("slot: identifier", "keybag frame: its checksum"),
        [
            INIT,
            *four(),
            f"slot add key-file second {WITH_KEY}",
            f"slot add key-file third {WITH_KEY}",
            f"slot remove 2 {WITH_KEY}",
        ],
        [by("key", FOUR), by("third", FOUR), wrong("second")],
    ),
    Recording(
        "vaultctl-scopes",
        "A recovery key, and key files that open everything and what may be read after the first unlock.",
        named("slot: kind, scope"),
        [
            INIT,
            *four(),
            f"slot add recovery {WITH_KEY}",
            f"slot add key-file second {WITH_KEY}",
            f"slot add key-file third --scope all {WITH_KEY}",
        ],
        [
            by("key", FOUR),
            by("%6", FOUR),
            by("third", FOUR),
            by(
                "second",
                FOUR[:2],
                [refused(WHEN, WHEN, 1, "notPermitted"), refused(WHEN_HERE, WHEN_HERE, 3, "notPermitted")],
            ),
        ],
    ),
    Recording(
        "vaultctl-devices",
        "Two devices, each with an item of its own.",
        named("class set: enrolled", "key: class wrap, device"),
        [INIT, *four(), f"device enrol {THERE}", (f"store there {THERE}", "fake")],
        [
            by("key", FOUR, [refused("there", WHEN_HERE, 6)]),
            by("key", [FOUR[0], item("there", "fake", generation=6), FOUR[2]], ELSEWHERE, state="there"),
        ],
    ),
    Recording(
        "vaultctl-device-removed",
        "The second device was removed, and its item with it.",
        named("keybag: number of class sets"),
        [
            INIT,
            *four(),
            f"device enrol {THERE}",
            (f"store there {THERE}", "fake"),
            f"device remove %6 --yes {WITH_KEY}",
        ],
        [by("key", FOUR), by("key", PORTABLE, ELSEWHERE, state="there")],
    ),
    Recording(
        "vaultctl-revoked",
        "A key file was revoked: new roots, items sealed anew, and another device's set under the older ones.",
        named("class set: older roots", "class: class version"),
        [
            INIT,
            *four(),
            f"slot add key-file second {WITH_KEY}",
            f"device enrol {THERE}",
            (f"store there {THERE}", "fake"),
            f"slot remove 2 --revoke {WITH_KEY}",
        ],
        [
            by("key", FOUR, [refused("there", WHEN_HERE, 7)]),
            by("key", [FOUR[0], item("there", "fake", generation=7), FOUR[2]], ELSEWHERE, state="there"),
            wrong("second"),
        ],
    ),
    Recording(
        "vaultctl-passphrase",
        "A passphrase that was changed, and an item that needs one.",
        named("key: class wrap, passcode", "slot: memory in bytes"),
        [
            f"init {WITH_PASSPHRASE}",
            (f"store k --policy {PASSCODE} {WITH_PASSPHRASE}", "fake"),
            f"passphrase --new-passphrase-file new {WITH_PASSPHRASE}",
            f"slot add key-file key {WITH_NEW}",
        ],
        [
            by("new", [item("k", "fake", PASSCODE)]),
            by("key", [], [refused("k", PASSCODE, 1, "notPermitted")]),
            by("new", [], [refused("k", PASSCODE, 1)], state=None),
            wrong("passphrase"),
        ],
    ),
    Recording(
        "vaultctl-passphrase-removed",
        "The last passphrase was removed, and the item that needed one with it.",
        named("slot: kind"),
        [
            INIT,
            *four(),
            f"slot add passphrase --new-passphrase-file passphrase {WITH_KEY}",
            (f"store k --policy {PASSCODE} {WITH_PASSPHRASE}", "fake"),
            f"slot remove 2 --yes {WITH_KEY}",
        ],
        [by("key", FOUR), wrong("passphrase")],
    ),
    Recording(
        "vaultctl-export",
        "The portable items of a vault.",
        named("export: TVEXPORT"),
        [
            INIT,
            *four(),
            (
                f"store details --policy {WHEN} --label Größe --attribute a=b --expires "
                f"2040-01-31T12:00:00Z {WITH_KEY}",
                "fake",
            ),
            f"export out.export --export-passphrase-file of-export {WITH_KEY}",
        ],
        [],
        "out.export",
    ),
]


def _of_export():
    of_export = PASSPHRASES["of-export"].removesuffix("\n")
    found = PORTABLE[::-1] + [
        item("details", "fake", WHEN, label="Größe", attributes=[["a", "b"]], expires=2211624000000)
    ]
    found = [{name: value for name, value in one.items() if name != "generation"} for one in found]
    RECORDINGS[-1].openings = [
        {"passphrase": of_export, "items": found},
        {"passphrase": "another", "code": "wrongPassphrase", "at": "read"},
    ]


_of_export()
