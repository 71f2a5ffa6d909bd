"""The vault of three items that many vectors are made of."""

from writer.vault import Vault


# Separate files, although they are changes of another file too.
WHOLE = ("three", "ignorable", "c", "torn-sector", "torn-commit", "torn-group", "spliced")


class OfThree:
    """The catalog; what it gets is told as changes of `three`."""

    def __init__(self, catalog):
        self.catalog = catalog

    def vault(self, name, *arguments, **more):
        self.catalog.vault(name, *arguments, **more, of=None if name.startswith(WHOLE) else "three")


def three(name="three"):
    vault = Vault(name, devices=0)
    frames = [vault.store(key, f"fake {key} " * 90) for key in ["first", "second", "third"]]
    return vault, frames


def without(vault, *keys):
    for key in keys:
        vault.items.pop(("default", key))
    vault.log.sequence -= len(keys)
    return vault
