"""An export file: its front, its messages, and the items in them."""

from nacl import bindings

from cursor import Cursor
from failure import Failure, corrupt
from items import LIMITED, read_body, read_metadata, value_in_json
from primitives import argon2id, derive, keyed, spellings

FRONT = 96
LONGEST = 2 << 20
FINAL = bindings.crypto_secretstream_xchacha20poly1305_TAG_FINAL


def read_export(file, passphrase, time=None):
    """The items as JSON has them, in the order of the file. Raises Failure."""
    cursor = Cursor(file[:FRONT], "export: front")
    if cursor.bytes(8) != b"TVEXPORT":
        raise corrupt("export: no export")
    if cursor.integers("HH") != (1, 0):
        raise Failure("unsupportedFormat", "export: version")
    passes, memory = cursor.integers("IQ")
    if not 3 <= passes <= 12 or not 64 << 20 <= memory <= 2 << 30:
        raise corrupt("export: cost")
    salt, commitment, header = cursor.bytes(16), cursor.bytes(32), cursor.bytes(24)
    for spelling in spellings(passphrase):
        key = argon2id(spelling, salt, passes, memory)
        if keyed(key, b"tokenvault 1 export commitment\0" + salt) == commitment:
            break
    else:
        raise Failure("wrongPassphrase", "export")
    state = bindings.crypto_secretstream_xchacha20poly1305_state()
    stream = derive(key, "tokenvault 1 export stream", salt)
    bindings.crypto_secretstream_xchacha20poly1305_init_pull(state, header, stream)
    return _items(file, state, time or (lambda moment, where: moment))


def _items(file, state, time):
    items, cursor = [], Cursor(file, "export")
    front = cursor.bytes(FRONT)
    while True:
        length = cursor.integer("I")
        where = f"export: message at {cursor.position}"
        if length > LONGEST:
            raise corrupt(where)
        try:
            plain, tag = bindings.crypto_secretstream_xchacha20poly1305_pull(state, cursor.bytes(length), front)
        except (RuntimeError, ValueError):
            raise corrupt(where) from None
        message = Cursor(plain, where)
        kind, policy, zero, count = message.integers("BBHI")
        if zero or kind not in (1, 2) or (tag == FINAL) != (kind == 2):
            raise corrupt(where)
        if kind == 2:
            if (policy, count, len(plain)) != (0, 8,
                16) or message.integer("Q") != len(items) or cursor.position != len(file):
                raise corrupt(where)
            break
        if policy not in (1, 2):
            raise corrupt(where)
        (service, key), details, proof = read_metadata(message.bytes(count), policy, where, time)
        if policy == 2 and proof is None:
            details |= {"policyOrigin": LIMITED}
        value = value_in_json(read_body(plain[message.position :], where))
        items.append({"service": service, "key": key} | value | details)
    if len({(item["service"], item["key"]) for item in items}) != len(items):
        raise corrupt("export: an item twice")
    return items
