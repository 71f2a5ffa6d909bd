"""Fields one after the other, each with a name, so that a vector can have any of them otherwise."""

import struct


class Fields:
    def __init__(self, forged=None):
        """Each field that `forged` names gets those bytes in place of its own."""
        self.forged = dict(forged or {})
        self.data = bytearray()
        self.places = {}

    def add(self, name, value):
        value = self.forged.pop(name, value)
        self.places[name] = len(self.data)
        self.data += value

    def integer(self, name, layout, value):
        self.add(name, struct.pack("<" + layout, value))

    def finish(self):
        if self.forged:
            raise KeyError(f"no such fields: {sorted(self.forged)}")
        return bytes(self.data)


def u8(number):
    return bytes([number])


def u16(number):
    return struct.pack("<H", number)


def u32(number):
    return struct.pack("<I", number)


def u64(number):
    return struct.pack("<Q", number)


def i64(number):
    return struct.pack("<q", number)


def text(string):
    encoded = string if isinstance(string, bytes) else string.encode()
    return u32(len(encoded)) + encoded
