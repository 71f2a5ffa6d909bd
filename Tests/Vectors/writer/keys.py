"""Devices, slots, class sets and roots: what a keybag is made of."""

from dataclasses import dataclass, field

from primitives import derive, digest

PASSPHRASE, KEY_FILE, KEYRING, RECOVERY = 1, 2, 3, 4
EVERYTHING, AFTER_FIRST_UNLOCK = 1, 2
PORTABLE = bytes(16)


@dataclass
class Device:
    """What a device's state directory has: identifier, key, and the pepper if there is one."""

    identifier: bytes
    key: bytes
    pepper: bytes

    @property
    def tag(self):
        return int.from_bytes(self.identifier[:8], "big") | 1

    def file(self):
        front = b"TVDEVIC1" + self.identifier + self.key
        return front + digest(front, 16)


@dataclass
class Slot:
    identifier: int
    kind: int
    secret: bytes
    scope: int
    created: int
    passes: int
    memory: int
    salt: bytes = b""
    commitment: bytes = b""
    roots: bytes = b""


@dataclass
class Class:
    policy: int
    version: int
    metadata: bytes
    body: bytes
    sealed: bytes = b""


@dataclass
class ClassSet:
    device: Device | None  # None for the portable set
    enrolled: int
    older: list = field(default_factory=list)
    classes: list = field(default_factory=list)

    @property
    def identifier(self):
        return self.device.identifier if self.device else PORTABLE

    @property
    def tag(self):
        return self.device.tag if self.device else 0

    def newest(self, policy):
        return max((one for one in self.classes if one.policy == policy), key=lambda one: one.version)


@dataclass
class Roots:
    everything: bytes  # R
    passcode: bytes  # P
    holder: bytes  # A

    @classmethod
    def fresh(cls, source, vault):
        root = source.bytes(32)
        return cls(root, source.bytes(32), derive(root, "tokenvault 1 after-first-unlock root", vault))
