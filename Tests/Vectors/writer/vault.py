"""A vault being written, and what a reader is to find in it."""

from primitives import derive, keyed

from writer import items, log
from writer.findings import Findings
from writer.fields import u8, u32, u64
from writer.items import Item
from writer.keybag import Keybag
from writer.keys import KEY_FILE, PASSPHRASE, Device
from writer.source import Source

KEY = b"not a real key: 0123456789abcdef0123456789abcdef"
NOON = 1_700_000_000_000


class Vault(Findings):
    """Portable classes 1 and 2, and 3, 4 for one device; a key file opens it unless `secret` says otherwise."""

    def __init__(self, name, kind=KEY_FILE, secret=KEY, devices=1, kept_values=0, **slot):
        self.source = Source(name)
        self.keybag = Keybag(self.source)
        self.keybag.kept_values = kept_values
        self.keybag.add_slot(kind, secret, **slot)
        self.portable = self.keybag.add_set(None, [1, 2])
        self.devices = [self._device() for _ in range(devices)]
        policies = [3, 4, 5] if kind == PASSPHRASE else [3, 4]
        for device in self.devices:
            self.keybag.add_set(device, policies, NOON)
        self.log = log.Log(self.source, self.keybag.vault, self.keybag.log_key)
        self.items, self.refused = {}, {}
        self.pointer = bytes(512)
        self.copies = [self.keybag.copy()] * 2
        self.begin()

    def _device(self):
        return Device(self.source.bytes(16), self.source.bytes(32), self.source.bytes(32))

    def begin(self, **forged):
        """The first frame."""
        log_, named = self.log, self.copies[0][-32:]
        plain = u64(log_.epoch) + log_.identifier + u64(log_.base) + u64(self.keybag.generation) + named
        body = log_.control(log.GENESIS, log_.base, plain)
        return log_.frame(log.GENESIS, log_.base, body=body, **forged)

    def set_of(self, device):
        return next(one for one in self.keybag.sets if one.device is device)

    # Writing

    def store(
        self,
        key,
        value,
        policy=1,
        service="default",
        label=None,
        attributes=None,
        expires=None,
        created=None,
        modified=None,
        device=None,
        ends=True,
        generation=None,
        alone=True,
        version=None,
        remember=True,
        plain_metadata=None,
        plain_body=None,
        marked=False,
        **forged,
    ):
        """A commit of its own, in a group of its own unless `alone` is false."""
        if alone:
            self.log.next_group()
        generation = self.log.sequence + 1 if generation is None else generation
        one = self.portable if policy < 3 else self.set_of(device or self.devices[0])
        known = self.items.get((service, key))
        created = known.created if created is None and known else created
        moment = NOON + 1000 * generation if generation < 1 << 40 else NOON
        item = Item(
            service,
            key,
            value if isinstance(value, bytes) else value.encode(),
            policy,
            one,
            label,
            attributes or {},
            moment if created is None else created,
            moment if modified is None else modified,
            expires,
            generation,
        )
        item.marked = marked
        if not marked:
            item.proof = self.proof(item, version)
        plain = items.metadata(item) if plain_metadata is None else plain_metadata(item)
        written = self.add(
            item, plain, items.body(item.value) if plain_body is None else plain_body, ends, version, **forged
        )
        if remember:
            self.items[service, key] = item
        return written

    def proof(self, item, version=None):
        """The proof that a session with the root key chose the item's policy; None where it needs none."""
        if item.policy not in (2, 4):
            return None
        version = item.of.newest(item.policy).version if version is None else version
        gate = next(each for each in item.of.classes if (each.policy, each.version) == (item.policy - 1, version))
        number, _ = self.log.name(item.service, item.key)
        about = b"".join([u64(number[0]), u64(number[1]), u8(item.policy), u32(version), u64(item.of.tag)])
        return keyed(derive(gate.body, "tokenvault 1 policy proof", self.keybag.vault), about, 16)

    def add(self, item, plain_metadata, plain_body, ends=True, version=None, **forged):
        """The frame of an item with these plaintexts."""
        keys = item.of.newest(item.policy)
        if version is not None:
            keys = next(each for each in item.of.classes if (each.policy, each.version) == (item.policy, version))
        item.version = keys.version
        number, service_tag = self.log.name(item.service, item.key)
        value_tag = int.from_bytes(self.source.bytes(8), "little")
        about = item.policy, keys.version, item.of.tag, item.generation, value_tag
        sealed = [
            items.seal(self.source, key, plain, f"item {part}", self.keybag.vault, number, about)
            for key, plain, part in [(keys.metadata, plain_metadata, "metadata"), (keys.body, plain_body, "body")]
        ]
        return self.log.frame(
            log.ITEM,
            item.generation,
            *sealed,
            ends=ends,
            policy=item.policy,
            version=keys.version,
            item=number,
            service_tag=service_tag,
            set_tag=item.of.tag,
            value_tag=value_tag,
            **forged,
        )

    def delete(self, key, service="default", with_names=True, ends=True, alone=True, generation=None, forget=True):
        if alone:
            self.log.next_group()
        item = self.items.pop((service, key)) if forget else self.items[service, key]
        generation = self.log.sequence + 1 if generation is None else generation
        number, service_tag = self.log.name(service, key)
        about = item.policy, item.version, item.of.tag, generation, 0
        metadata = b""
        if with_names:
            item.modified = NOON + 1000 * generation
            keys = next(each for each in item.of.classes if (each.policy, each.version) == (item.policy, item.version))
            plain = items.metadata(item, is_deletion=True)
            label = "deletion metadata"
            metadata = items.seal(self.source, keys.metadata, plain, label, self.keybag.vault, number, about)
        return self.log.frame(
            log.DELETION,
            generation,
            metadata,
            ends=ends,
            policy=item.policy,
            version=item.version,
            item=number,
            service_tag=service_tag,
            set_tag=item.of.tag,
        )

    def finished(self):
        """The vault as its writer leaves it before there is an item: a checkpoint follows what came with the file."""
        self.checkpoint(counts=False)
        return self

    def checkpoint(self, type_=log.CHECKPOINT, counts=True):
        self.log.next_group()
        return self.log.frame(type_, self.log.sequence + counts)

    def change_keybag(self, finish=True, named=True):
        """The keybag as it is now becomes the one in use: first copy, frame, second copy. Not `named` or not
        `finish`: a crash came before the frame, or before the second copy."""
        self.keybag.generation += 1
        self.copies[0] = self.keybag.copy()
        if named:
            self.name_keybag(self.keybag.generation, self.copies[0][-32:])
        if finish and named:
            self.copies[1] = self.copies[0]

    def name_keybag(self, generation, checksum):
        self.log.next_group()
        number = self.log.sequence + 1
        body = self.log.control(log.KEYBAG, number, u64(generation) + checksum)
        return self.log.frame(log.KEYBAG, number, body=body)

    def compact(self, reseal=False, in_part=(), left=()):
        """A new epoch with the live items in their order and with their generations. What was sealed stays as it
        is unless `reseal`. `in_part` and `left` are of merges that left values in their copies."""
        old, frames = bytes(self.log.data), {frame.item: frame for frame in self.log.frames}
        live = sorted(self.items.values(), key=lambda item: frames[self.log.name(item.service, item.key)[0]].offset)
        history = list(self.log.history)
        self.log.begin(self.log.epoch + 1, self.source.bytes(16), self.log.sequence)
        self.begin()
        self.log.ancestry(history, in_part, left)
        for item in live:
            frame = frames[self.log.name(item.service, item.key)[0]]
            if reseal and item.of.newest(item.policy).version > item.version:
                if not item.marked:
                    item.proof = self.proof(item)
                self.add(item, items.metadata(item), items.body(item.value))
                continue
            start = frame.offset - log.START + log.FRONT
            contents = old[start : start + frame.metadata + frame.body]
            self.log.frame(
                log.ITEM,
                frame.generation,
                contents[: frame.metadata],
                contents[frame.metadata :],
                policy=frame.policy,
                version=frame.version,
                item=frame.item,
                service_tag=frame.service_tag,
                set_tag=frame.set_tag,
                value_tag=frame.value_tag,
            )
        self.log.next_group()
        self.log.frame(log.CHECKPOINT, self.log.sequence)
