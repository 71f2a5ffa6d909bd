"""A Secret Service that misbehaves as told, for what the real one will not show.

Usage: fake_service.py BEHAVIOUR... Prints `ready` when it owns the service's name, and a line for what it
was asked that a test wants to know. Sessions are `plain`: the tests allow them, or see them refused.
"""

import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

SERVICE = "org.freedesktop.Secret.Service"
COLLECTION = "org.freedesktop.Secret.Collection"
ITEM = "org.freedesktop.Secret.Item"
PROMPT = "org.freedesktop.Secret.Prompt"
SESSION = "org.freedesktop.Secret.Session"
PROPERTIES = "org.freedesktop.DBus.Properties"
ROOT = "/org/freedesktop/secrets"
ONLY = ROOT + "/collection/only"

behaviours = set(sys.argv[1:])


def say(text):
    print(text, flush=True)


def misbehave(point):
    """Ends the process, or tells the caller not to answer, when that is the behaviour at this point."""
    if f"die-on-{point}" in behaviours:
        os._exit(1)
    is_silent = f"silent-on-{point}" in behaviours
    if is_silent:
        say("silent")
    return is_silent


class Failure(dbus.DBusException):
    def __init__(self, name, text=""):
        super().__init__(text)
        self._dbus_error_name = name


class Locked(Failure):
    def __init__(self):
        super().__init__("org.freedesktop.Secret.Error.IsLocked", "locked")


class Object(dbus.service.Object):
    interface = None

    def properties(self):
        return {}

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v", async_callbacks=("done", "fail"))
    def Get(self, interface, name, done, fail):
        if misbehave("get"):
            return
        done(self.properties()[name])

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, interface):
        return self.properties()


class Service(Object):
    def properties(self):
        return {"Collections": dbus.Array([ONLY], signature="o")}

    @dbus.service.method(SERVICE, in_signature="sv", out_signature="vo", async_callbacks=("done", "fail"))
    def OpenSession(self, algorithm, input, done, fail):
        if misbehave("open"):
            return
        if algorithm != "plain":
            fail(Failure("org.freedesktop.DBus.Error.NotSupported", algorithm))
            return
        done(dbus.String("", variant_level=1), dbus.ObjectPath(ROOT + "/session/1"))

    @dbus.service.method(SERVICE, in_signature="s", out_signature="o")
    def ReadAlias(self, name):
        return dbus.ObjectPath("/" if "no-default" in behaviours else ONLY)

    @dbus.service.method(SERVICE, in_signature="a{sv}s", out_signature="oo")
    def CreateCollection(self, properties, alias):
        kind = dbus.String if "prompt-gives-text" in behaviours else dbus.ObjectPath
        made = kind(ONLY, variant_level=1)
        return dbus.ObjectPath("/"), show_prompt(lambda: behaviours.discard("no-default"), made)

    @dbus.service.method(
        SERVICE, in_signature="a{ss}", out_signature="aoao", async_callbacks=("done", "fail"))
    def SearchItems(self, attributes, done, fail):
        if misbehave("search"):
            return
        # Only in a search for a key: the first search of all looks for commits under way.
        is_gone = "found-and-gone" in behaviours or "found-and-gone-later" in behaviours and items
        if is_gone and "account" in attributes:
            behaviours.difference_update({"found-and-gone", "found-and-gone-later"})
            say("gone")
            done(dbus.Array([ONLY + "/gone"], signature="o"), dbus.Array([], signature="o"))
            return
        found = dbus.Array([
            item.path for item in items.values()
            if all(item.attributes.get(name) == value for name, value in attributes.items())
        ], signature="o")
        done(
            dbus.Array([path for path in found if not items[path].is_locked], signature="o"),
            dbus.Array([path for path in found if items[path].is_locked], signature="o"))

    @dbus.service.method(SERVICE, in_signature="ao", out_signature="aoo")
    def Unlock(self, paths):
        if not collection.locked:
            confirmed = [path for path in paths if path in items and items[path].is_locked]
            if confirmed:
                result = dbus.Array(confirmed, signature="o", variant_level=1)
                return dbus.Array([], signature="o"), show_prompt(lambda: confirm(confirmed), result)
            return dbus.Array(paths, signature="o"), dbus.ObjectPath("/")
        unlocked = dbus.Array([dbus.ObjectPath(ONLY)], signature="o", variant_level=1)
        return dbus.Array([], signature="o"), show_prompt(lambda: setattr(collection, "locked", False), unlocked)


class Prompt(Object):
    def __init__(self, path, accept, result):
        self.accept = accept
        self.result = result
        super().__init__(bus, path)

    @dbus.service.method(PROMPT, in_signature="s", out_signature="")
    def Prompt(self, window):
        if "prompt-accepts" in behaviours:
            self.accept()
            GLib.idle_add(self.Completed, False, self.result)
        elif "prompt-is-dismissed" in behaviours:
            GLib.idle_add(self.Completed, True, dbus.String("", variant_level=1))
        elif "die-on-prompt" in behaviours:
            GLib.idle_add(os._exit, 1)
        else:
            say("prompting")

    @dbus.service.method(PROMPT, in_signature="", out_signature="")
    def Dismiss(self):
        say("dismissed")
        self.Completed(True, dbus.String("", variant_level=1))

    @dbus.service.signal(PROMPT, signature="bv")
    def Completed(self, dismissed, result):
        pass


class Collection(Object):
    locked = "locked" in behaviours

    def properties(self):
        return {"Locked": dbus.Boolean(self.locked), "Label": "Only"}

    @dbus.service.method(
        COLLECTION, in_signature="a{sv}(oayays)b", out_signature="oo", async_callbacks=("done", "fail"),
        byte_arrays=True,
    )
    def CreateItem(self, properties, secret, replace, done, fail):
        if misbehave("create"):
            say("creating")
            return
        if self.locked:
            fail(Locked())
            return
        path = f"{ONLY}/{len(items)}"

        def make():
            items[path] = Item(path, properties, secret)

        if "create-prompts" in behaviours:
            done(dbus.ObjectPath("/"), show_prompt(make, dbus.ObjectPath(path, variant_level=1)))
            return
        make()
        done(dbus.ObjectPath(path), dbus.ObjectPath("/"))


class Item(Object):
    def __init__(self, path, properties, secret):
        self.path = path
        self.label = str(properties[f"{ITEM}.Label"])
        self.attributes = {str(k): str(v) for k, v in properties[f"{ITEM}.Attributes"].items()}
        self.value = bytes(secret[2])
        self.is_confirmed = False
        super().__init__(bus, self.path)

    @property
    def is_locked(self):
        return collection.locked or "confirms-items" in behaviours and not self.is_confirmed

    def properties(self):
        return {
            "Locked": dbus.Boolean(self.is_locked),
            "Label": self.label,
            "Attributes": dbus.Dictionary(self.attributes, signature="ss"),
            "Created": dbus.UInt64(1),
            "Modified": dbus.UInt64(1),
        }

    @dbus.service.method(ITEM, in_signature="o", out_signature="(oayays)", async_callbacks=("done", "fail"))
    def GetSecret(self, session, done, fail):
        if misbehave("secret"):
            return
        if self.is_locked:
            fail(Locked())
            return
        if "other-session" in behaviours:
            say("secret")
            session = dbus.ObjectPath(ROOT + "/session/other")
        done(dbus.Struct(
            (session, dbus.ByteArray(b""), dbus.ByteArray(self.value), "text/plain"), signature="oayays"))

    @dbus.service.method(ITEM, in_signature="", out_signature="o")
    def Delete(self):
        if f"keeps-{os.path.basename(self.path)}" in behaviours:
            raise Failure("org.freedesktop.DBus.Error.Failed", "kept")
        if "delete-prompts" in behaviours:
            return show_prompt(self.vanish, dbus.String("", variant_level=1))
        self.vanish()
        return dbus.ObjectPath("/")

    def vanish(self):
        del items[self.path]
        self.remove_from_connection()


def confirm(paths):
    for path in paths:
        items[path].is_confirmed = True


def show_prompt(accept, result):
    global prompts
    prompts += 1
    path = f"{ROOT}/prompt/{prompts}"
    Prompt(path, accept, result)
    return dbus.ObjectPath(path)


prompts = 0
items = {}
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
service = Service(bus, ROOT)
collection = Collection(bus, ONLY)
name = dbus.service.BusName("org.freedesktop.secrets", bus, do_not_queue=True)
say("ready")
GLib.MainLoop().run()
