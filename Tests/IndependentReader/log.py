"""The walk over the frames: where the log ends, and whether what follows is a torn write or damage."""

from dataclasses import dataclass

from cursor import Cursor
from failure import Failure, corrupt
from frames import ANCESTRY, CHECKPOINT, FRONT, GENESIS, KEYBAG, SUPERSEDED, TAIL, authentic, length_in_prefix, whole
from primitives import associated, digest, unseal

START = 16896
SECTOR = 512


@dataclass(frozen=True)
class Log:
    frames: list
    epoch: int
    epoch_identifier: bytes
    base_sequence: int
    keybag_generation: int  # as named by the genesis frame or the last keybag frame
    keybag_checksum: bytes

    @property
    def sequence(self):
        return max(self.base_sequence, *(frame.generation for frame in self.frames))


def check_roots(log, names, anchor):
    """Raises forked unless each root that the anchor names is the keybag's or one before it."""
    if anchor is None:
        return
    is_coming = anchor.coming > 0 and (log.epoch, log.epoch_identifier) == (anchor.coming, anchor.coming_identifier)
    known = (anchor.coming_root, anchor.coming_holder) if is_coming else (anchor.root, anchor.holder)
    for name, own in zip(known, names):
        if own is not None and any(name) and name not in own:
            raise Failure("forked", "keybag: its roots did not replace those that the anchor names")


def read_log(file, keys, anchor):
    """The commits that count, checked against the anchor. Raises corrupt, rolledBack, forked or unsupportedFormat."""
    frames, failing = _walk(file, keys)
    if not frames or frames[0].type != GENESIS or not frames[0].contents_fit(file):
        raise corrupt("log: no genesis frame")
    log = _controls(file, frames, keys)
    _check_anchor(file, keys, log, anchor, failing)
    if not _is_whole(frames):
        raise corrupt("log: ends inside what was written with the file")
    if failing is None and any(file[frames[-1].end :]):
        failing = frames[-1].end
    if failing is not None and not _is_torn(file, failing, keys):
        raise corrupt(f"log: damage at {failing}")
    return log


def _walk(file, keys):
    """The frames of whole commits, and where the first frame is that fails, if one does."""
    frames, committed, offset, previous, failing = [], 0, START, bytes(32), None
    while any(file[offset : offset + 8]):
        frame = whole(file, offset, keys)
        if frame is None:
            failing = offset
            break
        if frame.previous != previous:
            raise corrupt(f"log: the frame at {offset} does not follow the one before")
        if frame.group_start not in ({offset, frames[-1].group_start} if frames else {offset}):
            raise corrupt(f"log: group start of the frame at {offset}")
        frames.append(frame)
        offset, previous = frame.end, frame.chain
        if frame.ends_commit:
            committed = len(frames)
    if failing is None and committed < len(frames):
        failing = offset
    del frames[committed:]
    for index, frame in enumerate(frames):
        if frame.group_start == frames[-1].group_start and not frame.contents_fit(file):
            failing = frame.offset
            del frames[index:]
            break
    while frames and not frames[-1].ends_commit:
        frames.pop()
    return frames, failing


def _is_torn(file, offset, keys):
    """Whether a crash explains what stands at the offset and behind it."""
    if not any(file[offset:]):
        return True
    for position in range(offset + 8, len(file) - FRONT - TAIL + 1, 8):
        if length_in_prefix(file, position) is not None:
            behind = authentic(file, position, keys)
            if behind is not None and behind.group_start > offset:
                return False
    frame = authentic(file, offset, keys)
    if frame is not None and any(file[offset : offset + 8]) and length_in_prefix(file, offset) != frame.length:
        return False
    end = frame.end if frame else offset + FRONT
    if end > len(file) or not any(file[end - 16 : end]):
        return True
    return any(not any(share) for share in _sectors(file, offset, end))


def _sectors(file, start, end):
    while start < end:
        next_ = min(end, (start // SECTOR + 1) * SECTOR)
        yield file[start:next_]
        start = next_


def _controls(file, frames, keys):
    epoch = named = None
    for frame in frames:
        where = f"log: control record at {frame.offset}"
        if frame.type < 128 and not GENESIS <= frame.type <= ANCESTRY:
            raise Failure("unsupportedFormat", f"log: frame of type {frame.type} at {frame.offset}")
        if (frame.type == GENESIS) != (frame is frames[0]):
            raise corrupt(where)
        if frame.type in (GENESIS, KEYBAG):
            cursor = _control(file, frame, keys, where)
            if frame.type == GENESIS:
                epoch = cursor.integer("Q"), cursor.bytes(16), cursor.integer("Q")
                if max(epoch[0], epoch[2]) >= 1 << 53:
                    raise corrupt(where)
            named = cursor.integer("Q"), cursor.bytes(32)
            if named[0] >= 1 << 53:
                raise corrupt(where)
            cursor.zeros_to(cursor.position + 7 & ~7)
            if cursor.position != len(cursor.data):
                raise corrupt(where)
        elif frame.type in (CHECKPOINT, SUPERSEDED) and frame.metadata_length + frame.body_length:
            raise corrupt(where)
    return Log(frames, *epoch, *named)


def _control(file, frame, keys, where):
    """What a control record says."""
    fields = keys.vault, bytes([frame.type]), frame.generation.to_bytes(8, "little")
    body = unseal(keys.control, frame.body(file), associated("tokenvault 1 control record", *fields))
    if body is None or frame.metadata_length or digest(frame.body(file)) != frame.content_digest:
        raise corrupt(where)
    return Cursor(body, where)


def _past(file, frames, keys):
    """Sequence and tag of each commit of earlier epochs that the log descends from."""
    if len(frames) < 2 or frames[1].type != ANCESTRY:
        return []
    where = f"log: ancestry at {frames[1].offset}"
    cursor = _control(file, frames[1], keys, where)
    count, flags = cursor.integers("II")
    if count > 8192 or flags > 3:
        raise corrupt(where)
    past = [(cursor.integer("Q"), cursor.bytes(8)) for _ in range(count)]
    if flags & 2:
        # Commits that merges took without some values: the log does not descend from them.
        commits_in_part, left_values = cursor.integers("II")
        if commits_in_part > 8192 or not 1 <= left_values <= 1024:
            raise corrupt(where)
        cursor.bytes(16 * commits_in_part + 24 * left_values)
    if cursor.position != len(cursor.data):
        raise corrupt(where)
    return past


def _is_whole(frames):
    """Whether a commit follows what was written with the file, which a checkpoint follows at once."""
    return any(frame.ends_commit and frame.group_start > START and frame.type != SUPERSEDED for frame in frames)


def _check_anchor(file, keys, log, anchor, failing):
    if anchor is None:
        return
    is_whole = _is_whole(log.frames)
    if (log.epoch, log.epoch_identifier) == (anchor.epoch, anchor.epoch_identifier):
        reaches = any(frame.chain == anchor.chain for frame in log.frames)
        if failing is not None and not reaches:
            raise corrupt(f"log: damage at {failing}, which the anchor reaches")
    else:
        is_coming = anchor.coming > 0 and (log.epoch, log.epoch_identifier) == (anchor.coming, anchor.coming_identifier)
        reaches = is_whole and (is_coming or (anchor.sequence, anchor.chain[:8]) in _past(file, log.frames, keys))
    if reaches and log.keybag_generation >= anchor.keybag_generation:
        return
    is_older = (
        log.sequence <= anchor.sequence
        if log.epoch < anchor.epoch
        else log.epoch == anchor.epoch and (log.sequence < anchor.sequence or not is_whole)
    )
    if not reaches and not is_older:
        raise Failure("forked", "log: the anchored commit is not in its past")
    raise Failure("rolledBack", "log: older than the anchor")
