"""What this device knows of a vault: its device key, the passcode pepper and the anchor."""

import struct
from dataclasses import dataclass
from pathlib import Path

from failure import Failure
from primitives import digest, keyed


@dataclass(frozen=True)
class State:
    device: bytes | None
    device_key: bytes | None
    pepper: bytes | None
    anchor: bytes | None


@dataclass(frozen=True)
class Anchor:
    counter: int
    epoch: int
    epoch_identifier: bytes
    sequence: int
    chain: bytes
    keybag_generation: int
    device: int = 0  # of the file, and its inode
    inode: int = 0
    coming: int = 0  # the epoch that a restore is about to begin
    coming_identifier: bytes = bytes(16)
    root: bytes = bytes(16)  # the names of R and of A, zeros if unknown
    holder: bytes = bytes(16)
    coming_root: bytes = bytes(16)  # the same for the coming epoch
    coming_holder: bytes = bytes(16)


def read_state(directory, vault):
    if directory is None:
        return State(None, None, None, None)
    device, pepper, anchor = (_contents(directory, vault, name) for name in ("device", "pepper", "anchor"))
    if pepper is not None and len(pepper) != 32:
        pepper = None
    if device is None or len(device) != 72 or device[:8] != b"TVDEVIC1" or digest(device[:56], 16) != device[56:]:
        return State(None, None, pepper, anchor)
    return State(device[8:24], device[24:56], pepper, anchor)


def _contents(directory, vault, name):
    try:
        return Path(directory, f"{vault.hex()}.{name}").read_bytes()
    except FileNotFoundError:
        return None


def read_anchor(contents, key):
    """The slot that counts, or None when there is no anchor or neither slot is whole. Raises forked for another log key."""
    slots = [contents[start : start + 512] for start in (0, 512)] if contents else []
    whole = [(slot.counter, slot, data) for data in slots if _is_whole(data) and (slot := _slot(data))]
    if not whole:
        return None
    _, slot, data = max(whole, key=lambda one: one[0])
    if keyed(key, data[:192]) != data[192:224]:
        raise Failure("forked", "anchor: it is under another log key")
    return slot


def _is_whole(data):
    if len(data) != 512 or data[:8] != b"TVANCHR1" or any(data[240:]):
        return False
    return digest(data[:224], 16) == data[224:240]


def _slot(data):
    anchor = Anchor(*struct.unpack("<QQ16sQ32sQQQQ16s16s16s16s16s", data[8:192]))
    numbers = [anchor.counter, anchor.epoch, anchor.sequence, anchor.keybag_generation, anchor.coming]
    return anchor if max(numbers) < 1 << 53 else None
