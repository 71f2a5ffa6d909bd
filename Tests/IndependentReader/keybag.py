"""The keybag: the fields of one copy, every bound checked, nothing decrypted."""

from dataclasses import dataclass

from cursor import Cursor
from failure import Failure, corrupt
from primitives import digest

SIZE = 8192
MAGIC = b"TKNVAULT"
PASSPHRASE, KEY_FILE, KEYRING, RECOVERY = 1, 2, 3, 4
EVERYTHING, AFTER_FIRST_UNLOCK = 1, 2
PORTABLE = bytes(16)
GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Slot:
    identifier: int
    kind: int
    scope: int
    passes: int
    memory: int
    salt: bytes
    commitment: bytes
    fields_to_salt: bytes
    sealed_roots: bytes


@dataclass(frozen=True)
class SealedClass:
    policy: int
    version: int
    keys: bytes


@dataclass(frozen=True)
class ClassSet:
    enrolled: int  # milliseconds since 1970
    older_roots: list  # none, or R and A, or R, A and P, each sealed under its successor
    classes: list


@dataclass(frozen=True)
class Keybag:
    vault: bytes
    generation: int
    slots: list
    class_sets: dict  # device identifier → ClassSet
    successions: list  # none, or of R and of A, each sealed
    sealed_log_key: bytes
    fields_to_log_key: bytes
    root_code: bytes
    holder_code: bytes
    checksum: bytes


def read_copies(file):
    """The copies that are whole, newest first. At least one."""
    keybags, failures = {}, []
    for copy in (file[0:SIZE], file[SIZE : 2 * SIZE]):
        try:
            keybags[copy] = _parse(copy)
        except Failure as failure:
            failures.append(failure)
    if not keybags:
        order = ["unsupportedFormat", "corrupt", "notAVault"]
        raise min(failures, key=lambda failure: order.index(failure.code))
    return sorted(keybags.values(), key=lambda keybag: -keybag.generation)


def is_date(milliseconds):
    return abs(milliseconds) < 1 << 53


def _parse(copy):
    if not copy.startswith(MAGIC):
        raise Failure("notAVault", "keybag: no copy begins like one")
    if len(copy) != SIZE or digest(copy[:-32]) != copy[-32:]:
        raise corrupt("keybag: both copies are damaged")
    cursor = Cursor(copy, "keybag")
    cursor.bytes(len(MAGIC))
    version, kept_values, removed_count, former_count = cursor.integers("HHHH")
    if version != 1 or kept_values > 100 or removed_count > 16 or former_count > 8:
        raise Failure("unsupportedFormat", "keybag: version")
    vault = cursor.bytes(16)
    generation, next_slot, count = cursor.integers("QIH")
    if generation >= 1 << 53:
        raise corrupt("keybag: generation")
    slots = [_slot(cursor) for _ in range(count)] if 1 <= count <= 16 else []
    _check_slots(slots, next_slot)
    count = cursor.integer("H")
    sets = [_class_set(cursor) for _ in range(count)] if 1 <= count <= 8 else []
    if not sets or len(dict(sets)) != len(sets):
        raise corrupt("keybag: class sets")
    removed = [(cursor.bytes(16), cursor.integer("q")) for _ in range(removed_count)]
    enrolments = {(device, one.enrolled) for device, one in sets}
    if len(set(removed)) != len(removed) or set(removed) & enrolments or not all(is_date(date) for _, date in removed):
        raise corrupt("keybag: removed devices")
    successions = [cursor.bytes(40 + 32 * former_count) for _ in range(2 if former_count else 0)]
    sealed_log_key = cursor.bytes(72)
    fields = copy[: cursor.position]
    codes = cursor.bytes(32), cursor.bytes(32)
    cursor.zeros_to(SIZE - 32)
    return Keybag(vault, generation, slots, dict(sets), successions, sealed_log_key, fields, *codes, copy[-32:])


def _slot(cursor):
    start = cursor.position
    identifier, kind, scope, created, passes, memory = cursor.integers("IBBqIQ")
    if not is_date(created):
        raise corrupt("keybag: date of a slot")
    salt = cursor.bytes(16)
    fields = cursor.data[start : cursor.position]
    commitment = cursor.bytes(32)
    length = cursor.integer("H")
    if not 72 <= length <= 104:
        raise corrupt("keybag: length of sealed roots")
    roots = cursor.bytes(length)
    return Slot(identifier, kind, scope, passes, memory, salt, commitment, fields, roots)


def _check_slots(slots, next_slot):
    if not slots or len({slot.identifier for slot in slots}) != len(slots):
        raise corrupt("keybag: slots")
    for slot in slots:
        if slot.kind not in (PASSPHRASE, KEY_FILE, KEYRING, RECOVERY) or slot.scope not in (EVERYTHING,
            AFTER_FIRST_UNLOCK):
            raise Failure("unsupportedFormat", "keybag: kind or scope of a slot")
        if slot.identifier >= next_slot:
            raise corrupt("keybag: number of a slot")
        if slot.kind != PASSPHRASE and (slot.passes or slot.memory):
            raise corrupt("keybag: a key file with a cost")
        if slot.kind == PASSPHRASE and not (1 <= slot.passes <= 12 and 8192 <= slot.memory <= 2 * GIBIBYTE):
            raise corrupt("keybag: cost of a slot")
    if sum(slot.kind == PASSPHRASE for slot in slots) > 8:
        raise corrupt("keybag: too many passphrases")
    if sum(slot.passes * slot.memory for slot in slots) > 24 * GIBIBYTE:
        raise corrupt("keybag: cost of all slots")


def _class_set(cursor):
    device = cursor.bytes(16)
    classes = []
    enrolled, older = cursor.integers("qB")
    if not is_date(enrolled):
        raise corrupt("keybag: date of enrolment")
    if older > 2:
        raise Failure("unsupportedFormat", "keybag: older roots")
    if device == PORTABLE and older:
        raise corrupt("keybag: older roots of the portable set")
    older_roots = [cursor.bytes(72) for _ in range(older and older + 1)]
    count = cursor.integer("B")
    if count > 16:
        raise corrupt("keybag: too many classes")
    for _ in range(count):
        policy, version = cursor.integers("BI")
        if policy not in ((1, 2) if device == PORTABLE else (3, 4, 5)):
            raise corrupt("keybag: policy of a class")
        classes.append(SealedClass(policy, version, cursor.bytes(104)))
    return device, ClassSet(enrolled, older_roots, classes)
