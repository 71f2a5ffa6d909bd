"""Export files."""

from nacl import bindings

from primitives import argon2id, derive, keyed

from writer import items
from writer.fields import Fields, u32, u64, u8
from writer.source import Source

PASSPHRASE = b"a fake passphrase of an export"


class Export:
    def __init__(self, name, passes=3, memory=64 << 20, passphrase=PASSPHRASE, cost=None, **forged):
        """`cost`: of the key, when the one in the file is not to be paid."""
        self.source = Source(name)
        salt = self.source.bytes(16)
        key = argon2id(passphrase, salt, *(cost or (passes, memory)))
        fields = Fields({name.replace("_", " "): value for name, value in forged.items()})
        fields.add("magic", b"TVEXPORT")
        fields.integer("version", "H", 1)
        fields.integer("zero", "H", 0)
        fields.integer("passes", "I", passes)
        fields.integer("memory", "Q", memory)
        fields.add("salt", salt)
        fields.add("commitment", keyed(key, b"tokenvault 1 export commitment\0" + salt))
        header = self.source.bytes(24)
        fields.add("header", header)
        self.front = fields.finish()
        self.state = bindings.crypto_secretstream_xchacha20poly1305_state()
        # The state after reading a header equals the state after making it. Making one would use random bytes.
        stream = derive(key, "tokenvault 1 export stream", salt)
        bindings.crypto_secretstream_xchacha20poly1305_init_pull(self.state, header, stream)
        self.messages, self.count = [], 0

    def message(self, plain, final=False):
        tags = (
            bindings.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE,
            bindings.crypto_secretstream_xchacha20poly1305_TAG_FINAL,
        )
        sealed = bindings.crypto_secretstream_xchacha20poly1305_push(self.state, plain, self.front, tags[final])
        self.messages.append(u32(len(sealed)) + sealed)

    def item(self, item, kind=1, policy=None, zero=bytes(2), length=None):
        # The stream is sealed as a whole: zeros only mean that the policy is the owner's choice.
        item.proof = None if item.marked else bytes(16)
        metadata, body = items.metadata(item), items.body(item.value)
        length = u32(len(metadata)) if length is None else length
        self.message(u8(kind) + u8(item.policy if policy is None else policy) + zero + length + metadata + body)
        self.count += 1

    def end(self, count=None, final=True, policy=0):
        self.message(u8(2) + u8(policy) + bytes(2) + u32(8) + u64(self.count if count is None else count), final)

    def file(self):
        return self.front + b"".join(self.messages)
