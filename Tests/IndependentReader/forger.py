"""Appends frames and changes keybags as somebody could who holds the keys, or no keys at all."""

import os
import struct
from dataclasses import astuple, replace

from nacl import bindings

from frames import FRONT, Frame, whole
from keybag import SIZE
from primitives import associated, digest, keyed, padded
from read_vault import open_vault
from state import Anchor


def seal(key, plain, data):
    nonce = os.urandom(24)
    return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, data, nonce, key)


def with_keybags(vault, place, contents):
    """Both copies with other contents at a place, and checksums that fit."""
    copy = vault[:place] + contents + vault[place + len(contents) : SIZE - 32]
    copy += digest(copy)
    return copy + copy + vault[2 * SIZE :]


def text(string):
    return struct.pack("<I", len(string.encode())) + string.encode()


class Forger:
    def __init__(self, vault, state_directory, secret, commits=True):
        """Appends behind the last commit or, unless `commits`, behind the one frame that follows it."""
        self.vault = vault
        self.opened = open_vault(vault, state_directory, secret)
        self.keys = self.opened.log_keys
        self.last = self.opened.log.frames[-1]
        if not commits:
            self.last = whole(vault, self.last.end, self.keys)

    def item(self, service, key, **changes):
        """A header for an item of the portable when-unlocked class, in the next commit."""
        lookup = keyed(self.keys.lookup, text(service) + text(key), 16)
        tag = int.from_bytes(keyed(self.keys.service, service.encode(), 16)[:8], "big")
        frame = Frame(
            offset=self.last.end, type=2, ends_commit=1, policy=1, version=1,
            generation=self.opened.log.sequence + 1, group_start=self.last.end, previous=self.last.chain,
            item=struct.pack("<QQ", *struct.unpack(">QQ", lookup)), service_tag=tag, set_tag=0,
            metadata_length=0, body_length=0, content_digest=b"", chain=b"",
        )
        return replace(frame, **changes)

    def metadata(self, service, key):
        plain = text(service) + text(key)
        plain += struct.pack("<qqBqB", 0, 0, 0, 0, 0) + text("") + b"\0\0" + b"\0"
        plain = struct.pack("<I", len(plain)) + plain
        return plain.ljust(padded(len(plain)), b"\0")

    def body(self, secret):
        plain = struct.pack("<Q", len(secret)) + secret
        return plain.ljust(padded(len(plain)), b"\0")

    def sealed(self, frame, metadata, body):
        """The sealed contents of an item's frame."""
        tags = frame.item + struct.pack(
            "<BIQQQ", frame.policy, frame.version, frame.set_tag, frame.generation, frame.value_tag
        )
        keys = self.opened.class_keys[0, 1, 1]
        label = "tokenvault 1 deletion metadata" if frame.type == 3 else "tokenvault 1 item metadata"
        sealed = seal(keys.metadata, metadata, associated(label, self.keys.vault, tags))
        if body is None:
            return sealed, b""
        return sealed, seal(keys.body, body, associated("tokenvault 1 item body", self.keys.vault, tags))

    def control(self, frame, body):
        fields = self.keys.vault, bytes([frame.type]), frame.generation.to_bytes(8, "little")
        return b"", seal(self.keys.control, body, associated("tokenvault 1 control record", *fields))

    def anchor(self, **changes):
        """Both slots of an anchor at the log's last frame."""
        log = self.opened.log
        anchor = Anchor(1, log.epoch, log.epoch_identifier, log.sequence, self.last.chain, log.keybag_generation)
        slot = b"TVANCHR1" + struct.pack("<QQ16sQ32sQQQQ16s16s16s16s16s", *astuple(replace(anchor, **changes)))
        slot += keyed(self.keys.anchor, slot)
        slot = (slot + digest(slot, 16)).ljust(512, b"\0")
        return slot + slot

    def append(self, frame, metadata=b"", body=b"", zero=0, stored_by=0):
        """The vault with the frame behind its last one."""
        contents = metadata + body
        header = struct.pack(
            "<BBBBIQQQ", frame.type, frame.ends_commit, frame.policy, zero, frame.version, frame.generation,
            frame.group_start, stored_by,
        )
        header += frame.previous + frame.item
        header += struct.pack("<QQII", frame.service_tag, frame.set_tag, len(metadata), len(body)) + digest(contents)
        header += struct.pack("<Q", frame.value_tag)
        length = FRONT + len(contents) + 32
        front = b"TVF1" + struct.pack("<I", length)
        front += seal(self.keys.header, header, associated("tokenvault 1 frame header", self.keys.vault))
        whole = front + contents + digest(contents)[:16] + digest(front, 16)
        return self.vault[: self.last.end] + whole + self.vault[self.last.end + length :]
