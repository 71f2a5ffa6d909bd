"""The fields that the tables of Format.md have, by name."""

import re
from pathlib import Path

FORMAT = Path(__file__).resolve().parents[3] / "Sources/TokenVault/Documentation.docc/Format.md"
# The titles of tables that describe no bytes.
OTHERS = {"libsodium", "", "name here"}


def format_fields():
    """`table: field` for each field, in the order of the text."""
    fields, title = {}, None
    for line in FORMAT.read_text().splitlines():
        if not line.startswith("| "):
            title = None if not line.startswith("|--") else title
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if title is None:
            title = cells[0] if cells[0] == "key" else cells[-1]
            continue
        if title in OTHERS:
            continue
        parts = [cells[0]] if title == "key" else _parts(cells[-1], cells[-2].count(",") + 1)
        fields |= {f"{title}: {part}": None for part in parts}
    return list(fields)


def _parts(name, count):
    """The names of a row that stands for several fields."""
    names = re.split(r",\s*", re.split(r"[:;(‖]", name.replace("`", ""))[0])
    if count > 1:
        names = re.split(r",\s*", re.sub(r"\([^)]*\)", "", re.split(r"[:;]", name.replace("`", ""))[0]))
    return [each.strip() for each in names[:count]]


if __name__ == "__main__":
    print("\n".join(format_fields()))
