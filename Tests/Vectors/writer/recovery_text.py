"""The text of a recovery key."""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def write(key):
    bits = f"{int.from_bytes(key, 'big'):0160b}"
    groups = []
    for group in range(8):
        values = [int(bits[20 * group + start :][:5], 2) for start in (0, 5, 10, 15)]
        check = group + 1
        for value in values:
            check = (check ^ value) * 2
            check = check ^ 37 if check > 31 else check
        groups.append("".join(ALPHABET[value] for value in [*values, check]))
    return "-".join(groups)
