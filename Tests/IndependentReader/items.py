"""The items: the last frame of each, opened and checked against its header."""

import base64
import struct
from datetime import datetime, timedelta, timezone

from cursor import Cursor
from failure import corrupt
from frames import DELETION, ITEM
from keys import NAMES
from primitives import associated, keyed, padded, unseal

LONGEST_NAME, MOST_ATTRIBUTES = 1024, 64
# The origin of a policy that a session without the root key chose.
LIMITED = "limited-session"


def live_frames(frames):
    """The frame of each item that is there, in the order of the log."""
    live = {}
    for frame in frames:
        if frame.type == ITEM:
            live[frame.item] = frame
        elif frame.type == DELETION:
            live.pop(frame.item, None)
    return list(live.values())


def open_item(file, frame, log_keys, class_keys, time=None):
    """The item as JSON has it; `time` makes of a time's milliseconds, and where they are, what stands for it."""
    where = f"item at {frame.offset}"
    names, details, proof = open_metadata(file, frame, class_keys.metadata, log_keys.vault, where, time)
    if class_keys.proof is not None:
        tags = struct.pack("<BIQ", frame.policy, frame.version, frame.set_tag)
        if proof != keyed(class_keys.proof, frame.item + tags, 16):
            details |= {"policyOrigin": LIMITED}
    service, key = names
    texts = b"".join(len(text).to_bytes(4, "little") + text for text in (part.encode() for part in names))
    digest = keyed(log_keys.lookup, texts, 16)
    if frame.item != digest[7::-1] + digest[:7:-1]:
        raise corrupt(f"{where}: another item's metadata")
    if frame.service_tag != int.from_bytes(keyed(log_keys.service, service.encode(), 16)[:8], "big"):
        raise corrupt(f"{where}: service tag")
    value = value_in_json(_value(file, frame, class_keys.body, log_keys.vault, where))
    return {"service": service, "key": key} | value | details | {"generation": frame.generation}


def value_in_json(value):
    try:
        return {"value": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"valueBase64": base64.b64encode(value).decode("ascii")}


def _open(sealed, key, label, frame, vault, where):
    tags = b"".join(
        number.to_bytes(size, "little")
        for number, size in (
            (frame.policy, 1), (frame.version, 4), (frame.set_tag, 8), (frame.generation, 8), (frame.value_tag, 8)
        )
    )
    plain = unseal(key, sealed, associated(label, vault, frame.item, tags))
    if plain is None:
        raise corrupt(f"{where}: it does not open")
    return plain


def open_metadata(file, frame, key, vault, where, time=None):
    """Service and key, the rest as JSON has it, and the proof of the policy or None, of an item or a deletion."""
    label = "tokenvault 1 deletion metadata" if frame.type == DELETION else "tokenvault 1 item metadata"
    return read_metadata(_open(frame.metadata(file), key, label, frame, vault, where), frame.policy, where, time)


def read_metadata(plain, policy, where, time=None):
    """The same of a plaintext."""
    cursor = Cursor(plain, where)
    end = cursor.integer("I") + 4
    names = cursor.text(), cursor.text()
    if any(len(name.encode()) > LONGEST_NAME for name in names):
        raise corrupt(f"{where}: a name")
    created, modified = cursor.integers("qq")
    expires = _optional(cursor, lambda: cursor.integer("q"), 0)
    label = _optional(cursor, cursor.text, "")
    count = cursor.integer("H")
    if count > MOST_ATTRIBUTES:
        raise corrupt(f"{where}: attributes")
    pairs = [(cursor.text(), cursor.text()) for _ in range(count)]
    proof = _optional(cursor, lambda: cursor.bytes(16) if cursor.data[cursor.position - 1] else None, None)
    if cursor.position != end or len(dict(pairs)) != len(pairs):
        raise corrupt(f"{where}: metadata")
    _check_padding(cursor, where)
    details = {"policy": NAMES[policy], "label": label, "attributes": dict(pairs) or None}
    times = {"created": created, "modified": modified, "expires": expires}
    time = time or _timestamp
    details |= {name: None if moment is None else time(moment, where) for name, moment in times.items()}
    return names, {name: detail for name, detail in details.items() if detail is not None}, proof


def _optional(cursor, read, absent):
    present, value = cursor.integer("B"), read()
    if present > 1 or (not present and value != absent):
        raise corrupt(f"{cursor.where}: an optional field")
    return value if present else None


def _value(file, frame, key, vault, where):
    return read_body(_open(frame.body(file), key, "tokenvault 1 item body", frame, vault, where), where)


def read_body(plain, where):
    """The secret of a body's plaintext."""
    cursor = Cursor(plain, where)
    value = cursor.bytes(cursor.integer("Q"))
    _check_padding(cursor, where)
    return value


def _check_padding(cursor, where):
    if len(cursor.data) != padded(cursor.position):
        raise corrupt(f"{where}: padding")
    cursor.zeros_to(len(cursor.data))


def _timestamp(milliseconds, where):
    try:
        time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise corrupt(f"{where}: a time") from None
    return time.isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
