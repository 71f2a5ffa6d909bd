"""From a passphrase or key file to the keys: slots, roots, codes, log key and class keys."""

import struct
from dataclasses import dataclass

from failure import Failure, corrupt
from keybag import EVERYTHING, KEY_FILE, KEYRING, PASSPHRASE, PORTABLE, RECOVERY
import recovery
from primitives import argon2id, associated, derive, digest, keyed, spellings, unseal, with_lengths

NAMES = {
    1: "when-unlocked",
    2: "after-first-unlock",
    3: "when-unlocked-this-device-only",
    4: "after-first-unlock-this-device-only",
    5: "when-passcode-set-this-device-only",
}


@dataclass(frozen=True)
class Secret:
    """What opens the vault: its kind of slot, and the passphrase or the key file's contents."""

    kind: int
    contents: bytes


@dataclass(frozen=True)
class Roots:
    root: bytes | None  # R
    passcode: bytes | None  # P
    holder: bytes  # A


def open_roots(keybag, secret):
    """The first slot that the secret fits and its roots. Raises wrongPassphrase when it fits none."""
    for secret in _readings(keybag, secret):
        for slot in keybag.slots:
            if slot.kind != secret.kind:
                continue
            key = _slot_key(slot, secret)
            if keyed(key, b"tokenvault 1 slot commitment" + keybag.vault + slot.salt) == slot.commitment:
                roots = _unwrap(keybag, slot, key)
                _check_codes(keybag, roots)
                return slot, roots
    raise Failure("wrongPassphrase", "keybag: no slot fits")


def _readings(keybag, secret):
    """What a passphrase may mean: the text of a recovery key, if the vault has one."""
    if secret.kind != PASSPHRASE:
        return [secret]
    typed = [Secret(PASSPHRASE, each) for each in spellings(secret.contents)]
    if all(slot.kind != RECOVERY for slot in keybag.slots):
        return typed
    key = recovery.read(secret.contents)
    return typed if key is None else [Secret(RECOVERY, key), *typed]


def _slot_key(slot, secret):
    if slot.kind == PASSPHRASE:
        return argon2id(secret.contents, slot.salt, slot.passes, slot.memory)
    label = {KEY_FILE: b"key file", KEYRING: b"secret service", RECOVERY: b"recovery key"}[slot.kind]
    return digest(with_lengths(b"tokenvault 1 " + label, slot.salt, secret.contents))


def _unwrap(keybag, slot, key):
    wrap = derive(key, "tokenvault 1 slot wrap", keybag.vault)
    opened = unseal(wrap, slot.sealed_roots, associated("tokenvault 1 slot", keybag.vault, slot.fields_to_salt))
    everything = slot.scope == EVERYTHING
    length = 64 if everything and slot.kind == PASSPHRASE else 32
    if opened is None or len(opened) != length:
        raise corrupt(f"slot {slot.identifier}: its roots")
    if not everything:
        return Roots(None, None, opened)
    root = opened[:32]
    holder = derive(root, "tokenvault 1 after-first-unlock root", keybag.vault)
    return Roots(root, opened[32:] if slot.kind == PASSPHRASE else None, holder)


def _check_codes(keybag, roots):
    codes = [(roots.holder, "holder", keybag.holder_code), (roots.root, "root", keybag.root_code)]
    for key, name, code in codes:
        if key is None:
            continue
        code_key = derive(key, f"tokenvault 1 keybag {name} code", keybag.vault)
        if keyed(code_key, keybag.fields_to_log_key) != code:
            raise corrupt(f"keybag: {name} code")


def open_log_key(keybag, roots):
    wrap = derive(roots.holder, "tokenvault 1 log wrap", keybag.vault)
    key = unseal(wrap, keybag.sealed_log_key, associated("tokenvault 1 log key", keybag.vault))
    if key is None or len(key) != 32:
        raise corrupt("keybag: log key")
    return key


def root_names(keybag, roots):
    """Of R and of A the names that the keybag has: its own and those before it. None where the root is not held."""
    return [_names(keybag, root, number) for number, root in enumerate((roots.root, roots.holder))]


def _names(keybag, root, number):
    if root is None:
        return None
    keys = derive(root, "tokenvault 1 succession", keybag.vault)
    if keybag.successions:
        wrap = derive(root, "tokenvault 1 succession wrap", keybag.vault)
        sealed = keybag.successions[number]
        former = unseal(wrap, sealed, associated("tokenvault 1 succession", keybag.vault))
        if former is None:
            raise corrupt("keybag: succession")
        keys += former
    parts = [keys[start : start + 32] for start in range(0, len(keys), 32)]
    return [keyed(key, b"tokenvault 1 succession name", 16) for key in parts]


@dataclass(frozen=True)
class ClassKeys:
    metadata: bytes
    body: bytes
    proof: bytes | None = None  # of policies, if the class is readable after first unlock and R is held


DESTROYED = "destroyed"


def access(keybag, class_keys, state, frame):
    """The keys of an item, the name of the code that says why they are not held, or DESTROYED."""
    keys = class_keys.get((frame.set_tag, frame.policy, frame.version))
    if isinstance(keys, ClassKeys):
        return keys
    if frame.policy in (3, 4, 5) and frame.set_tag not in map(set_tag, keybag.class_sets):
        return DESTROYED
    if frame.policy in (3, 4, 5) and (state.device not in keybag.class_sets or frame.set_tag != set_tag(state.device)):
        return "wrongDevice"
    if frame.policy == 5 and all(slot.kind != PASSPHRASE for slot in keybag.slots):
        return DESTROYED
    return keys or "unsupportedFormat"


def open_class_keys(keybag, roots, state):
    """By set tag, policy and version: the keys, or the name of the code that says why they are not held."""
    keys = {}
    for device, class_set in keybag.class_sets.items():
        own = roots
        if class_set.older_roots and device == state.device:
            own = _older_roots(keybag, roots, device, class_set.older_roots)
        for sealed in class_set.classes:
            wrap = _class_wrap(keybag, own, state, device, sealed.policy)
            if not isinstance(wrap, str):
                fields = keybag.vault, device, struct.pack("<BI", sealed.policy, sealed.version)
                opened = unseal(wrap, sealed.keys, associated("tokenvault 1 class", *fields))
                if opened is not None:
                    wrap = ClassKeys(opened[:32], opened[32:])
                elif sealed.policy == 5:
                    wrap = "wrongDevice"  # another pepper
                else:
                    raise corrupt(f"keybag: class {NAMES[sealed.policy]}")
            keys[set_tag(device), sealed.policy, sealed.version] = wrap
    for (tag, policy, version), one in keys.items():
        gate = keys.get((tag, policy - 1, version))
        if policy in (2, 4) and isinstance(one, ClassKeys) and isinstance(gate, ClassKeys):
            proof = derive(gate.body, "tokenvault 1 policy proof", keybag.vault)
            keys[tag, policy, version] = ClassKeys(one.metadata, one.body, proof)
    return keys


def _older_roots(keybag, roots, device, sealed):
    def opened(root, sealed):
        if root is None or sealed is None:
            return None
        wrap = derive(root, "tokenvault 1 older root wrap", keybag.vault, device)
        older = unseal(wrap, sealed, associated("tokenvault 1 older root", keybag.vault, device))
        if older is None or len(older) != 32:
            raise corrupt("keybag: older roots")
        return older

    root, holder, passcode = sealed + [None] * (3 - len(sealed))
    return Roots(opened(roots.root, root), opened(roots.passcode, passcode), opened(roots.holder, holder))


def set_tag(device):
    return 0 if device == PORTABLE else int.from_bytes(device[:8], "big") | 1


def _class_wrap(keybag, roots, state, device, policy):
    root = {1: roots.root, 2: roots.holder, 3: roots.root, 4: roots.holder, 5: roots.passcode}[policy]
    number = bytes([policy])
    if device != PORTABLE and device != state.device:
        return "wrongDevice"
    if policy == 5 and state.pepper is None:
        return "wrongDevice"
    if root is None:
        return "notPermitted"
    if device == PORTABLE:
        return derive(root, "tokenvault 1 portable class wrap", keybag.vault, number)
    own = keybag.vault, number, device, state.device_key
    if policy != 5:
        return derive(root, "tokenvault 1 device class wrap", *own)
    return derive(root, "tokenvault 1 passcode class wrap", *own, state.pepper)
