"""The keybag: slots, roots, class sets and the codes over them."""

from primitives import argon2id, associated, derive, digest, keyed, with_lengths

from writer.fields import Fields, u8, u16, u32
from writer.keys import AFTER_FIRST_UNLOCK, EVERYTHING, KEY_FILE, KEYRING, PASSPHRASE, RECOVERY
from writer.keys import Class, ClassSet, Roots, Slot

SIZE = 8192
LABELS = {KEY_FILE: b"key file", KEYRING: b"secret service", RECOVERY: b"recovery key"}


class Keybag:
    def __init__(self, source):
        self.source = source
        self.vault = source.bytes(16)
        self.generation, self.next_slot, self.kept_values = 1, 1, 0
        self.slots, self.sets, self.removed = [], [], []
        self.former, self.successions = [], []
        self.roots = Roots.fresh(source, self.vault)
        self.log_key = source.bytes(32)
        self._seal_log_key()

    def _seal_log_key(self):
        wrap = derive(self.roots.holder, "tokenvault 1 log wrap", self.vault)
        self.sealed_log_key = self.source.seal(wrap, self.log_key, associated("tokenvault 1 log key", self.vault))

    def add_slot(self, kind, secret, scope=EVERYTHING, created=1_700_000_000_000, passes=None, memory=None):
        passes, memory = (passes or 1, memory or 8192) if kind == PASSPHRASE else (0, 0)
        slot = Slot(self.next_slot, kind, secret, scope, created, passes, memory)
        self.next_slot += 1
        self._wrap_roots(slot)
        self.slots.append(slot)
        return slot

    def _wrap_roots(self, slot):
        slot.salt = self.source.bytes(16)
        if slot.kind == PASSPHRASE:
            key = argon2id(slot.secret, slot.salt, slot.passes, slot.memory)
        else:
            key = digest(with_lengths(b"tokenvault 1 " + LABELS[slot.kind], slot.salt, slot.secret))
        slot.commitment = keyed(key, b"tokenvault 1 slot commitment" + self.vault + slot.salt)
        roots = self.roots.everything + (self.roots.passcode if slot.kind == PASSPHRASE else b"")
        if slot.scope == AFTER_FIRST_UNLOCK:
            roots = self.roots.holder
        front = Fields()
        self._front_of(slot, front, "")
        data = associated("tokenvault 1 slot", self.vault, front.finish())
        slot.roots = self.source.seal(derive(key, "tokenvault 1 slot wrap", self.vault), roots, data)

    def add_set(self, device, policies, enrolled=0):
        one = ClassSet(device, enrolled)
        self.sets.append(one)
        for policy in policies:
            self.add_class(one, policy)
        return one

    def add_class(self, one, policy, version=None):
        known = [each.version for each in one.classes if each.policy == policy]
        version = version or max(known, default=0) + 1
        keys = Class(policy, version, self.source.bytes(32), self.source.bytes(32))
        self._wrap(one, keys)
        one.classes.append(keys)
        return keys

    def _wrap(self, one, keys):
        root = {2: self.roots.holder, 4: self.roots.holder, 5: self.roots.passcode}
        root = root.get(keys.policy, self.roots.everything)
        parts = [self.vault, u8(keys.policy)]
        label = "portable" if one.device is None else "passcode" if keys.policy == 5 else "device"
        if one.device:
            parts += [one.device.identifier, one.device.key]
        if label == "passcode":
            parts.append(one.device.pepper)
        wrap = derive(root, f"tokenvault 1 {label} class wrap", *parts)
        data = associated("tokenvault 1 class", self.vault, one.identifier, u8(keys.policy) + u32(keys.version))
        keys.sealed = self.source.seal(wrap, keys.metadata + keys.body, data)

    def renew_roots(self, device):
        """New roots for the slots that are there; new versions for the portable set and that of `device`."""
        old = self.roots
        self.roots = Roots.fresh(self.source, self.vault)
        self._seal_log_key()
        self.former = [old, *self.former][:8]
        self.seal_successions()
        for slot in self.slots:
            self._wrap_roots(slot)
        for one in self.sets:
            if one.device in (None, device):
                for keys in one.classes:
                    self._wrap(one, keys)
                for policy in sorted({keys.policy for keys in one.classes}):
                    self.add_class(one, policy)
                continue
            # The set always carries the first roots that it was wrapped under.
            one.first = getattr(one, "first", old)
            pairs = [(self.roots.everything, one.first.everything), (self.roots.holder, one.first.holder)]
            if any(keys.policy == 5 for keys in one.classes):
                pairs.append((self.roots.passcode, one.first.passcode))
            one.older = [self._older(one.identifier, *pair) for pair in pairs]

    def put_back_roots(self):
        """What an attacker with the former roots can write: the same keybag under those."""
        self.roots, self.former, self.successions = self.former[0], [], []
        self._seal_log_key()
        for slot in self.slots:
            self._wrap_roots(slot)
        for one in self.sets:
            one.older = []
            for keys in one.classes:
                self._wrap(one, keys)

    def seal_successions(self):
        self.successions = []
        for root in ["everything", "holder"]:
            own, former = getattr(self.roots, root), [getattr(roots, root) for roots in self.former]
            keys = b"".join(derive(each, "tokenvault 1 succession", self.vault) for each in former)
            wrap = derive(own, "tokenvault 1 succession wrap", self.vault)
            self.successions.append(self.source.seal(wrap, keys, associated("tokenvault 1 succession", self.vault)))

    def root_names(self, roots=None):
        """The names of R and A, as an anchor has them."""
        roots = roots or self.roots
        keys = [derive(each, "tokenvault 1 succession", self.vault) for each in (roots.everything, roots.holder)]
        return b"".join(keyed(key, b"tokenvault 1 succession name", 16) for key in keys)

    def _older(self, device, new, old):
        wrap = derive(new, "tokenvault 1 older root wrap", self.vault, device)
        return self.source.seal(wrap, old, associated("tokenvault 1 older root", self.vault, device))

    def _front_of(self, slot, fields, name):
        fields.integer(name + "identifier", "I", slot.identifier)
        fields.integer(name + "kind", "B", slot.kind)
        fields.integer(name + "scope", "B", slot.scope)
        fields.integer(name + "created", "q", slot.created)
        fields.integer(name + "passes", "I", slot.passes)
        fields.integer(name + "memory", "Q", slot.memory)
        fields.add(name + "salt", slot.salt)

    def fields(self, **forged):
        """Up to and with the log key. The names of forged fields have `_` for each space."""
        fields = Fields({name.replace("_", " "): value for name, value in forged.items()})
        fields.add("magic", b"TKNVAULT")
        fields.integer("version", "H", 1)
        fields.integer("kept values", "H", self.kept_values)
        fields.integer("removed", "H", len(self.removed))
        fields.integer("former roots", "H", len(self.former))
        fields.add("vault", self.vault)
        fields.integer("generation", "Q", self.generation)
        fields.integer("next slot", "I", self.next_slot)
        fields.integer("slots", "H", len(self.slots))
        for number, slot in enumerate(self.slots, 1):
            name = f"slot {number} "
            self._front_of(slot, fields, name)
            fields.add(name + "commitment", slot.commitment)
            fields.add(name + "length", u16(len(slot.roots)))
            fields.add(name + "roots", slot.roots)
        fields.integer("sets", "H", len(self.sets))
        for number, one in enumerate(self.sets, 1):
            name = f"set {number} "
            fields.add(name + "device", one.identifier)
            fields.integer(name + "enrolled", "q", one.enrolled)
            fields.integer(name + "older", "B", max(0, len(one.older) - 1))
            fields.add(name + "older roots", b"".join(one.older))
            fields.integer(name + "count", "B", len(one.classes))
            for position, keys in enumerate(one.classes, 1):
                each = f"{name}class {position} "
                fields.integer(each + "policy", "B", keys.policy)
                fields.integer(each + "version", "I", keys.version)
                fields.add(each + "keys", keys.sealed)
        fields.add("removed devices", b"".join(self.removed))
        fields.add("successions", b"".join(self.successions))
        fields.add("log key", self.sealed_log_key)
        return fields

    def copy(self, **forged):
        """One copy, whose codes and checksum fit whatever is forged."""
        front = self.fields(**forged).finish()
        codes = b""
        for root, name in [(self.roots.everything, "root"), (self.roots.holder, "holder")]:
            codes += keyed(derive(root, f"tokenvault 1 keybag {name} code", self.vault), front)
        return with_checksum((front + codes).ljust(SIZE - 32, b"\0"))

    def changed_copy(self, place, contents):
        """A copy with other bytes at a place, and a checksum that fits; the codes do not."""
        copy = self.copy()
        return with_checksum(copy[:place] + contents + copy[place + len(contents) : SIZE - 32])


def with_checksum(front):
    return front + digest(front)
