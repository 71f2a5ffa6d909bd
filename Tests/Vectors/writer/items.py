"""Items: their plaintext, and what a reader is to make of them."""

import base64
from dataclasses import dataclass

from primitives import associated, padded

from writer.fields import Fields, i64, text, u32, u64, u8
from writer.keys import ClassSet

NAMES = {
    1: "when-unlocked",
    2: "after-first-unlock",
    3: "when-unlocked-this-device-only",
    4: "after-first-unlock-this-device-only",
    5: "when-passcode-set-this-device-only",
}


@dataclass
class Item:
    service: str
    key: str
    value: bytes
    policy: int
    of: ClassSet
    label: str | None
    attributes: dict
    created: int
    modified: int
    expires: int | None
    generation: int = 0
    version: int = 0
    damaged_at: int | None = None
    proof: bytes | None = None
    marked: bool = False  # a session without the root key chose the policy

    def expected(self):
        """As it stands in the manifest."""
        try:
            value = {"value": self.value.decode()}
        except UnicodeDecodeError:
            value = {"valueBase64": base64.b64encode(self.value).decode()}
        told = {"service": self.service, "key": self.key, **value, "policy": NAMES[self.policy]}
        if self.marked:
            told["policyOrigin"] = "limited-session"
        if self.label is not None:
            told["label"] = self.label
        if self.attributes:
            # Two names may be the same text for a JSON reader, but have other bytes.
            told["attributes"] = sorted(map(list, self.attributes.items()), key=lambda pair: pair[0].encode())
        told |= {"created": self.created, "modified": self.modified}
        if self.expires is not None:
            told["expires"] = self.expires
        return told | {"generation": self.generation}

    def refused(self, code):
        """As it stands in the manifest when it cannot be read."""
        told = {"service": self.service, "key": self.key, "policy": NAMES.get(self.policy, self.policy)}
        told |= {"generation": self.generation, "code": code}
        if code == "corrupt" and self.damaged_at is not None:
            told["offset"] = self.damaged_at
        return told


def pad(plain):
    return plain.ljust(padded(len(plain)), b"\0")


def metadata(item, is_deletion=False, **forged):
    """The plaintext of an item's or a deletion's metadata."""
    fields = Fields({name.replace("_", " "): value for name, value in forged.items() if name != "length"})
    fields.add("service", text(item.service))
    fields.add("key", text(item.key))
    fields.add("created", i64(item.created))
    fields.add("modified", i64(item.modified))
    expires = None if is_deletion else item.expires
    fields.add("expires", u8(expires is not None) + i64(expires or 0))
    label = None if is_deletion else item.label
    fields.add("label", u8(label is not None) + text(label or ""))
    pairs = {} if is_deletion else item.attributes
    fields.integer("pairs", "H", len(pairs))
    fields.add("attributes", b"".join(text(part) for pair in pairs.items() for part in pair))
    proof = None if is_deletion else item.proof
    fields.add("proof", u8(proof is not None) + (proof or b""))
    plain = fields.finish()
    return pad(forged.get("length", u32(len(plain))) + plain)


def body(value, length=None):
    """The plaintext of an item's body."""
    return pad((u64(len(value)) if length is None else length) + value)


def seal(source, key, plain, label, vault, number, frame):
    """The sealed metadata or body of `item`, `deletion`."""
    policy, version, set_tag, generation, value_tag = frame
    fields = vault, u64(number[0]), u64(number[1]), u8(policy), u32(version), u64(set_tag), u64(generation), u64(value_tag)
    return source.seal(key, plain, associated(f"tokenvault 1 {label}", *fields))
