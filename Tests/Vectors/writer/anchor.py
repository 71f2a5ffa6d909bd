"""The anchor that a device keeps."""

from primitives import digest, keyed

from writer.fields import Fields, u64


def slot(key, counter, epoch, identifier, sequence, chain, keybag_generation, file=(0, 0), coming=(0, bytes(16)), roots=bytes(32), coming_roots=bytes(32), **forged):
    """One slot, 512 bytes."""
    fields = Fields(forged)
    fields.add("magic", b"TVANCHR1")
    fields.add("counter", u64(counter))
    fields.add("epoch", u64(epoch))
    fields.add("identifier", identifier)
    fields.add("sequence", u64(sequence))
    fields.add("chain", chain)
    fields.add("keybag", u64(keybag_generation))
    fields.add("file", u64(file[0]) + u64(file[1]))
    fields.add("coming", u64(coming[0]) + coming[1])
    fields.add("roots", roots)
    fields.add("coming roots", coming_roots)
    front = fields.finish()
    return whole(front + keyed(key, front))


def whole(front):
    """The slot with its checksum."""
    return (front + digest(front, 16)).ljust(512, b"\0")
