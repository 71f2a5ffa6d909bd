#!/usr/bin/env python3
"""Opens a vault as Format.md describes it and prints what is in it as JSON.

Shares no code with the library: where the two differ, one of them or the text is wrong.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from failure import STATUSES, Failure
from frames import LogKeys
from items import live_frames, open_item
from keybag import KEY_FILE, PASSPHRASE, Keybag, Slot, read_copies
from keys import DESTROYED, NAMES, Secret, access, open_class_keys, open_log_key, open_roots, root_names
from log import Log, check_roots, read_log
from state import State, read_anchor, read_state


@dataclass(frozen=True)
class Opened:
    keybag: Keybag
    slot: Slot
    state: State
    class_keys: dict
    log_keys: LogKeys
    log: Log


def read_vault(file, state_directory, secret):
    """What `main` prints. Raises Failure."""
    vault = open_vault(file, state_directory, secret)
    items, unreadable = [], []
    for frame in live_frames(vault.log.frames):
        keys = access(vault.keybag, vault.class_keys, vault.state, frame)
        if keys == DESTROYED:
            continue
        if isinstance(keys, str):
            policy = NAMES.get(frame.policy, frame.policy)
            unreadable.append({"policy": policy, "generation": frame.generation, "code": keys})
        else:
            items.append(open_item(file, frame, vault.log_keys, keys))
    items.sort(key=lambda item: (item["service"].encode(), item["key"].encode()))
    return {
        "vault": vault.keybag.vault.hex(),
        "epoch": vault.log.epoch,
        "sequence": vault.log.sequence,
        "keybagGeneration": vault.keybag.generation,
        "items": items,
        "unreadable": unreadable,
    }


def open_vault(file, state_directory, secret):
    """Opens with the copy that the log names."""
    refusal = Failure("wrongPassphrase", "keybag: no slot of the copy in use fits")
    copies = read_copies(file)
    for keybag in copies:
        try:
            slot, roots = open_roots(keybag, secret)
            state = read_state(state_directory, keybag.vault)
            class_keys = open_class_keys(keybag, roots, state)
            names = root_names(keybag, roots)
            log_keys = LogKeys(keybag.vault, open_log_key(keybag, roots))
        except Failure as failure:
            refusal = refusal if failure.code == "wrongPassphrase" else failure
            continue
        anchor = read_anchor(state.anchor, log_keys.anchor)
        log = read_log(file, log_keys, anchor)
        named = log.keybag_generation, log.keybag_checksum
        if (keybag.generation, keybag.checksum) == named:
            check_roots(log, names, anchor)
            return Opened(keybag, slot, state, class_keys, log_keys, log)
        if keybag.generation > log.keybag_generation + 1:
            refusal = Failure("rolledBack", "keybag: the log is older")
        elif refusal.code == "wrongPassphrase" and all((one.generation, one.checksum) != named for one in copies):
            refusal = Failure("corrupt", "keybag: neither copy is the one in use")
    raise refusal


def exit_status(answer):
    """0; what the vault was refused for; or what the items that are not shown lack."""
    codes = [answer["code"]] if "code" in answer else [one["code"] for one in answer["unreadable"]]
    return max((STATUSES[code] for code in codes), default=0)


def _secret(options):
    if options.passphrase_file is not None:
        return Secret(PASSPHRASE, _contents(options.passphrase_file).split(b"\n")[0])
    contents = _contents(options.key_file).removesuffix(b"\n")
    if not 32 <= len(contents) <= 4096:
        raise Failure("invalidArgument", "a key file has 32 to 4,096 bytes")
    return Secret(KEY_FILE, contents)


def _contents(path):
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Failure("unavailable", error.strerror) from None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vault")
    parser.add_argument("--state-dir", help="where device key and anchor are; without it there are none")
    unlocking = parser.add_mutually_exclusive_group(required=True)
    unlocking.add_argument("--passphrase-file")
    unlocking.add_argument("--key-file")
    options = parser.parse_args()
    try:
        answer = read_vault(_contents(options.vault), options.state_dir, _secret(options))
    except Failure as failure:
        answer = {"code": failure.code, "where": failure.where}
    json.dump(answer, sys.stdout, indent=1)
    print()
    return exit_status(answer)


if __name__ == "__main__":
    sys.exit(main())
