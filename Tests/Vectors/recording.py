"""What is typed for a vector that vaultctl writes, and what is to be found then."""

from dataclasses import dataclass


KEY_FILES = {
    "key": "not a real key: 0123456789abcdef0123456789abcdef\n",
    "second": "not a real key either: 0123456789abcdef\n",
    "third": "nor is this one: 0123456789abcdef0123456789abcdef\n",
}
LINE = '{"service":"imported","key":"key %d","value":"fake %d","policy":"when-unlocked"}\n'
PASSPHRASES = {
    "passphrase": "a fake passphrase\n",
    "new": "another fake passphrase\n",
    "of-export": "a fake passphrase of an export\n",
    "lines": "".join(LINE % (number, number) for number in range(5)),
}
WHEN, AFTER, WHEN_HERE, AFTER_HERE, PASSCODE = (
    "when-unlocked",
    "after-first-unlock",
    "when-unlocked-this-device-only",
    "after-first-unlock-this-device-only",
    "when-passcode-set-this-device-only",
)
AT = "--vault a.vault --state-dir here"
WITH_KEY = f"{AT} --key-file key"
THERE = "--vault a.vault --state-dir there --key-file key"
WITH_PASSPHRASE, WITH_NEW = f"{AT} --passphrase-file passphrase", f"{AT} --passphrase-file new"


@dataclass
class Recording:
    name: str
    about: str
    fields: list
    steps: list  # of command lines, alone or with their input; `%N` is the output of the Nth
    openings: list
    file: str = "a.vault"


def item(key, value, policy=WHEN_HERE, generation=1, service="default", **details):
    value = {"valueBase64": value} if details.pop("base64", False) else {"value": value}
    return {"service": service, "key": key, **value, "policy": policy, **details, "generation": generation}


def refused(key, policy, generation, code="wrongDevice", service="default"):
    return {"service": service, "key": key, "policy": policy, "generation": generation, "code": code}


def by(method, items=None, unreadable=(), state="here", **more):
    method = (
        {"keyFile": KEY_FILES[method].removesuffix("\n")}
        if method in KEY_FILES
        else (
            {"passphrase": PASSPHRASES[method].removesuffix("\n")} if method in PASSPHRASES else {"recoveryKey": method}
        )
    )
    opening = method | ({"state": state} if state else {}) | more
    return opening if items is None else opening | {"items": items, "unreadable": list(unreadable)}


def wrong(method, **more):
    return by(method, code="wrongPassphrase", at="unlock", **more)


def four():
    """An item of each policy that a vault without a passphrase has."""
    return [(f"store {policy} {WITH_KEY} --policy {policy}", "fake") for policy in [WHEN, AFTER, WHEN_HERE, AFTER_HERE]]


FOUR = [
    item(AFTER, "fake", AFTER, 2),
    item(AFTER_HERE, "fake", AFTER_HERE, 4),
    item(WHEN, "fake", WHEN, 1),
    item(WHEN_HERE, "fake", WHEN_HERE, 3),
]
PORTABLE = [FOUR[0], FOUR[2]]
ELSEWHERE = [refused(AFTER_HERE, AFTER_HERE, 4), refused(WHEN_HERE, WHEN_HERE, 3)]
INIT = f"init {WITH_KEY}"
