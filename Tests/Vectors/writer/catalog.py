"""The vectors: their files, and what the manifest says of each."""

import base64

from writer.keys import KEY_FILE, KEYRING, PASSPHRASE, RECOVERY
from writer.recovery_text import write


def named(*lines):
    """`table: field, field` as one name a field."""
    names = []
    for line in lines:
        table, fields = line.split(": ", 1)
        names += [f"{table}: {one}" for one in ([fields] if table == "key" else fields.split(", "))]
    return names


class Catalog:
    def __init__(self):
        self.entries, self.files = [], {}

    def vault(self, name, about, fields, file, openings, states=None, of=None):
        """A vault: its bytes, and the ways to open it, each `opens` or `fails`. One that is another but for some bytes
        is told as changes of that one's file."""
        self._add(name, about, fields, f"vaults/{name}.vault", file, openings, of and f"vaults/{of}.vault")
        for state, contents in (states or {}).items():
            for path, data in contents.items():
                self.files[f"vaults/{name}.{state}/{path}"] = data
        for opening in openings:
            if "state" in opening:
                opening["state"] = f"vaults/{name}.{opening['state']}"

    def export(self, name, about, fields, file, openings, of=None):
        name = f"export-{name}"
        self._add(name, about, fields, f"exports/{name}.export", file, openings, of and f"exports/export-{of}.export")

    def _add(self, name, about, fields, path, file, openings, base):
        if any(entry["name"] == name for entry in self.entries):
            raise ValueError(f"two vectors are named {name}")
        entry = {"name": name, "about": about, "file": base or path}
        if base is None:
            self.files[path] = file
        else:
            entry |= differences(self.files[base], file)
        self.entries.append(entry | {"by": "writer", "fields": fields, "openings": openings})


def differences(base, file):
    """What makes `file` of `base`: its length, when that is another, and the bytes at some places."""
    length = {} if len(base) == len(file) else {"length": len(file)}
    base, changes, place = base[: len(file)].ljust(len(file), b"\0"), [], 0
    while place < len(file):
        if base[place] == file[place]:
            place += 1
            continue
        end = place + 1
        while end < len(file) and base[end : end + 16] != file[end : end + 16]:
            end += 1
        changes.append({"at": place, "bytes": file[place:end].hex()})
        place = end
    return length | {"changes": changes}


def method(kind, secret):
    """How the manifest says what opens a vault."""
    if kind == KEYRING:
        return {"keyringKey": secret.hex()}
    if kind == RECOVERY:
        return {"recoveryKey": write(secret) if len(secret) == 20 else secret.decode()}
    name = "passphrase" if kind == PASSPHRASE else "keyFile"
    try:
        return {name: secret.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(secret).decode()}


def with_state(opening, state):
    return opening | ({} if state is None else {"state": state})


def opens(
    vault,
    slot=1,
    by=None,
    state=None,
    device=None,
    lacks=None,
    locks=False,
    problems=(),
    torn=False,
    told=None,
    **changes,
):
    """An opening that succeeds: with a slot's own secret unless `by` is another method."""
    used = next(one for one in vault.keybag.slots if one.identifier == slot)
    opening = with_state(by or method(used.kind, used.secret), state)
    if locks:
        opening["lockedAgain"] = True
        lacks = {1: "locked", 3: "locked", 5: "locked"} | (lacks or {})
    opening |= {
        "vault": vault.keybag.vault.hex(),
        "epoch": vault.log.epoch,
        "sequence": vault.log.sequence,
        "keybagGeneration": vault.keybag.generation,
        "slot": slot,
    }
    opening |= told or vault.readable(device, lacks)
    opening |= {"problems": list(problems), "isTorn": torn}
    return opening | changes


def fails(code, at="unlock", by=None, state=None, offset=None):
    """An opening that ends with a code: at `open`, before there is a key, or at `unlock`."""
    opening = with_state(by or {"keyFile": "not a real key: 0123456789abcdef0123456789abcdef"}, state)
    opening |= {"code": code, "at": at}
    return opening if offset is None else opening | {"offset": offset}


NO_DEVICE = {3: "wrongDevice", 4: "wrongDevice", 5: "wrongDevice"}
KEY_FILE_KIND = KEY_FILE
