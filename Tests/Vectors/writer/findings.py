"""What a vault's file and its device's state directory are, and what a reader finds in them."""

from writer.anchor import slot as anchor_slot


class Findings:
    """What a `Vault` is when it is written."""

    def file(self, tail=64):
        """The vault with as many zero bytes at its end."""
        return b"".join(self.copies) + self.pointer + bytes(self.log.data) + bytes(tail)

    def anchor(self, **changes):
        """A slot for the log as it is; `changes` to it."""
        log_ = self.log
        told = {
            "counter": 1,
            "epoch": log_.epoch,
            "identifier": log_.identifier,
            "sequence": log_.sequence,
            "chain": log_.chain,
            "keybag_generation": self.keybag.generation,
            "roots": self.keybag.root_names(),
        }
        return anchor_slot(log_.keys["anchor"], **(told | changes))

    def state(self, device=0, anchor=None, pepper=False):
        """A device's state directory. The anchor is one of two slots unless it has both."""
        name, files = self.keybag.vault.hex(), {}
        if device is not None:
            files[f"{name}.device"] = self.devices[device].file()
            if pepper:
                files[f"{name}.pepper"] = self.devices[device].pepper
        if anchor is not None:
            files[f"{name}.anchor"] = anchor.rjust(1024, b"\0")
        return files

    def readable(self, device=0, lacks=None):
        """Items and refusals for a device; `lacks` says why a policy's keys are not there."""
        found, refused = [], []
        own = self.devices[device] if device is not None else None
        for item in sorted(self.items.values(), key=lambda one: (one.service.encode(), one.key.encode())):
            code = (lacks or {}).get(item.policy)
            if item.of.device is not None and item.of.device is not own:
                code = "wrongDevice"
            code = self.refused.get((item.service, item.key), code)
            if code is None:
                found.append(item.expected())
            else:
                refused.append(item.refused(code))
        return {"items": found, "unreadable": refused}
