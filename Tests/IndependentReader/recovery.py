"""Recovery keys: 20 bytes as eight groups of four characters of base32 and a check."""

import re

from failure import Failure

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def read(text):
    """The key, or None for a text that is none. Raises wrongPassphrase for one that is mistyped."""
    if len(text) > 120:
        return None
    typed = text.decode("latin-1").upper().translate(str.maketrans("ILO", "110"))
    groups = [group for group in re.split("[- \t]+", typed) if group]
    if len(groups) != 8:
        joined = "".join(groups)
        if len(joined) != 40:
            return None
        groups = [joined[start : start + 5] for start in range(0, 40, 5)]
    wrong = [number for number, group in enumerate(groups, 1) if not _checks(number, group)]
    if len(wrong) > 4:
        return None
    if wrong:
        raise Failure("wrongPassphrase", f"recovery key: groups {wrong}")
    bits = "".join(f"{ALPHABET.index(character):05b}" for group in groups for character in group[:4])
    return int(bits, 2).to_bytes(20, "big")


def _checks(number, group):
    values = [ALPHABET.find(character) for character in group]
    if len(values) != 5 or -1 in values:
        return False
    for value in values[:4]:
        number = (number ^ value) << 1
        if number > 31:
            number ^= 37
    return number == values[4]
