"""Takes fields from bytes, one after the other, and never one that is not wholly there."""

import struct

from failure import corrupt


class Cursor:
    def __init__(self, data, where):
        self.data = data
        self.where = where
        self.position = 0

    def bytes(self, count):
        end = self.position + count
        if end > len(self.data):
            raise corrupt(f"{self.where}: a field goes beyond the end")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def integers(self, layout):
        return struct.unpack("<" + layout, self.bytes(struct.calcsize("<" + layout)))

    def integer(self, layout):
        return self.integers(layout)[0]

    def text(self):
        try:
            return self.bytes(self.integer("I")).decode("utf-8")
        except UnicodeDecodeError:
            raise corrupt(f"{self.where}: a text is not UTF-8") from None

    def zeros_to(self, end):
        if self.position > end or any(self.bytes(end - self.position)):
            raise corrupt(f"{self.where}: zeros are missing")
