"""A desktop of its own for tests: a D-Bus and a real gnome-keyring-daemon, in a directory of their own.

Usage: desktop.py DIRECTORY. Its methods are what a test may have done: see `commands.py`.
"""

import ctypes
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys

import dbus
import dbus.bus
import dbus.lowlevel

from commands import serve

SECRETS = "org.freedesktop.secrets"
ROOT = "/org/freedesktop/secrets"
ITEM = "org.freedesktop.Secret.Item"
COLLECTION = "org.freedesktop.Secret.Collection"
SERVICE = "org.freedesktop.Secret.Service"
PROPERTIES = "org.freedesktop.DBus.Properties"
INTERNAL = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface"
HERE = os.path.dirname(os.path.abspath(__file__))


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def call_driver(member, serial):
    """A call to the bus itself."""
    fields = [(1, "o", "/org/freedesktop/DBus"), (3, "s", member), (6, "s", "org.freedesktop.DBus"),
              (2, "s", "org.freedesktop.DBus")]
    return message(1, serial, fields, b"")


def receive(raw, pattern):
    """What matches in the next bytes that have it."""
    while not (found := re.search(pattern, raw.recv(4096))):
        pass
    return found.group().decode()


def connect_raw(path):
    """A connection to the bus without a library, which would let no reply be sent to what was not received; and
    its name."""
    raw = socket.socket(socket.AF_UNIX)
    raw.connect(path)
    raw.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
    raw.recv(4096)
    raw.sendall(b"BEGIN\r\n")
    raw.sendall(call_driver("Hello", 1))
    return raw, receive(raw, rb":[0-9]+[.][0-9]+")


def message(kind, serial, fields, body):
    """A message of D-Bus, little-endian."""
    array = b""
    for code, signature, value in fields:
        array += b"\0" * (-len(array) % 8) + bytes([code, 1]) + signature.encode() + b"\0"
        if signature == "u":
            array += struct.pack("<I", value)
        elif signature == "g":
            array += bytes([len(value)]) + value.encode() + b"\0"
        else:
            array += struct.pack("<I", len(value)) + value.encode() + b"\0"
    head = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), serial, len(array)) + array
    return head + b"\0" * (-len(head) % 8) + body


def method_return(destination, reply_to, serial):
    """A reply `(u)` of 1. The fields in an order that needs no padding between a byte and a number."""
    fields = [(5, "u", reply_to), (6, "s", destination), (8, "g", "u")]
    return message(2, serial, fields, struct.pack("<I", 1))


class Desktop:
    def __init__(self, directory):
        self.directory = directory
        self.address = f"unix:path={directory}/bus"
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": f"{directory}/home",
            "DBUS_SESSION_BUS_ADDRESS": self.address,
            "LC_ALL": "C.UTF-8",
        }
        for name in ("runtime", "data", "config", "cache", "state"):
            key = "XDG_RUNTIME_DIR" if name == "runtime" else f"XDG_{name.upper()}_HOME"
            self.environment[key] = f"{directory}/{name}"
            os.makedirs(f"{directory}/{name}", mode=0o700)
        os.makedirs(f"{directory}/home", mode=0o700)
        self.log = open(f"{directory}/log", "w")
        self.bus_process = None
        self.keyring = None
        self.fake = None
        self.forger = None
        self.raw = None
        self.start_bus()

    def spawn(self, words, **more):
        return subprocess.Popen(
            words, env=self.environment, stderr=self.log, preexec_fn=end_with_parent, cwd="/", **more
        )

    # The bus

    def start_bus(self):
        # Without service files, only the test itself starts services.
        config = f"{self.directory}/bus.conf"
        with open(config, "w") as file:
            file.write(
                "<busconfig><type>session</type>"
                f"<listen>{self.address}</listen><auth>EXTERNAL</auth>"
                '<policy context="default"><allow send_destination="*" eavesdrop="true"/>'
                '<allow eavesdrop="true"/><allow own="*"/></policy>'
                '<limit name="max_incoming_bytes">1000000000</limit>'
                '<limit name="max_outgoing_bytes">1000000000</limit>'
                '<limit name="max_message_size">1000000000</limit>'
                '<limit name="max_replies_per_connection">50000</limit>'
                '<limit name="max_match_rules_per_connection">50000</limit>'
                '<limit name="max_names_per_connection">50000</limit></busconfig>\n'
            )
        self.bus_process = self.spawn(
            ["dbus-daemon", f"--config-file={config}", "--nofork", "--print-address"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        # The bus prints its address once it listens.
        self.bus_process.stdout.readline()
        self.connect()

    def connect(self):
        self.bus = dbus.bus.BusConnection(self.address)
        self.bus.set_exit_on_disconnect(False)
        self.session = None

    def stop_bus(self):
        self.bus_process.kill()
        self.bus_process.wait()
        os.unlink(f"{self.directory}/bus")

    def restart_bus(self):
        self.stop_bus()
        self.start_bus()

    # The keyring

    def start_keyring(self, password="not-a-real-password"):
        if self.keyring and self.keyring.poll() is None:
            self.kill_keyring()
        self.keyring = self.spawn(
            ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self.keyring.stdin.write(password.encode())
        self.keyring.stdin.close()
        self.wait_for_secrets()

    def wait_for_secrets(self):
        subprocess.run(
            ["gdbus", "wait", "--session", SECRETS, "--timeout", "300"], env=self.environment, check=True
        )
        self.session = None

    def stop_keyring(self):
        self.keyring.terminate()
        self.keyring.wait()

    def kill_keyring(self):
        self.keyring.kill()
        self.keyring.wait()

    def pause_keyring(self):
        self.keyring.send_signal(signal.SIGSTOP)

    def resume_keyring(self):
        self.keyring.send_signal(signal.SIGCONT)

    def restart_keyring(self, password="not-a-real-password"):
        self.stop_keyring()
        self.start_keyring(password)

    # Other programs

    def interface(self, path, name):
        return dbus.Interface(self.bus.get_object(SECRETS, path, introspect=False), name)

    def plain_session(self):
        if self.session is None:
            self.session = self.interface(ROOT, SERVICE).OpenSession("plain", "", signature="sv")[1]
        return self.session

    def secret(self, value):
        return dbus.Struct(
            (self.plain_session(), dbus.ByteArray(b""), dbus.ByteArray(value), "text/plain"),
            signature="oayays",
        )

    def collection(self):
        return self.interface(ROOT, SERVICE).ReadAlias("default")

    def lock(self, path=None):
        self.interface(ROOT, SERVICE).Lock(dbus.Array([path or self.collection()], signature="o"))

    def unlock(self, path=None, password="not-a-real-password"):
        self.interface(ROOT, INTERNAL).UnlockWithMasterPassword(
            dbus.ObjectPath(path or self.collection()), self.secret(password.encode())
        )

    def create_collection(self, label, password):
        label = dbus.String(label, variant_level=1)
        return self.interface(ROOT, INTERNAL).CreateWithMasterPassword(
            dbus.Dictionary({f"{COLLECTION}.Label": label}, signature="sv"), self.secret(password.encode())
        )

    def delete_collection(self, path):
        self.interface(path, COLLECTION).Delete()

    def set_default(self, path):
        self.interface(ROOT, SERVICE).SetAlias("default", dbus.ObjectPath(path))

    def items(self, *words):
        return self.items_in(self.collection(), *words)

    def items_in(self, path, *words):
        return "\t".join(self.interface(path, COLLECTION).SearchItems(self.dictionary(words)))

    def dictionary(self, words, level=0):
        return dbus.Dictionary(dict(zip(words[::2], words[1::2])), signature="ss", variant_level=level)

    def create(self, label, secret, *words):
        return self.create_in(self.collection(), label, secret, *words)

    def create_in(self, path, label, secret, *words):
        properties = dbus.Dictionary(
            {f"{ITEM}.Label": label, f"{ITEM}.Attributes": self.dictionary(words)}, signature="sv"
        )
        target = self.interface(path, COLLECTION)
        return target.CreateItem(properties, self.secret(secret.encode()), False)[0]

    def delete(self, path):
        self.interface(path, ITEM).Delete()

    def set_secret(self, path, value):
        self.interface(path, ITEM).SetSecret(self.secret(value.encode()))

    def set_label(self, path, label):
        self.interface(path, PROPERTIES).Set(ITEM, "Label", dbus.String(label, variant_level=1))

    def set_attributes(self, path, *words):
        self.interface(path, PROPERTIES).Set(ITEM, "Attributes", self.dictionary(words, 1))

    def describe(self, path):
        properties = self.interface(path, PROPERTIES).GetAll(ITEM)
        words = [str(properties["Label"])]
        for name in sorted(properties["Attributes"]):
            words += [str(name), str(properties["Attributes"][name])]
        return "\t".join(words)

    def own_writer_name(self):
        self.bus.request_name("org.tokenvault.SecretServiceWriter")

    def release_writer_name(self):
        self.bus.release_name("org.tokenvault.SecretServiceWriter")

    def forge_writer(self):
        """Tells whoever waits for the writers' name that it has it; how many wait."""
        name = "org.tokenvault.SecretServiceWriter"
        driver = dbus.Interface(self.bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus")
        waiting = driver.ListQueuedOwners(name)[1:]
        for connection in waiting:
            forged = dbus.lowlevel.SignalMessage("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameAcquired")
            forged.append(name, signature="s")
            forged.set_destination(connection)
            self.bus.send_message(forged)
            self.wait_for(connection)
        return len(waiting)

    def wait_for(self, connection):
        """Until a connection has taken in what it was sent."""
        self.bus.call_blocking(connection, "/", "org.freedesktop.DBus.Peer", "Ping", "", ())

    def forge_completion(self, prompt, path):
        """Tells every connection that the person agreed to a prompt, and waits until the bus has told them."""
        driver = dbus.Interface(self.bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus")
        for connection in driver.ListNames():
            if not connection.startswith(":"):
                continue
            forged = dbus.lowlevel.SignalMessage(prompt, "org.freedesktop.Secret.Prompt", "Completed")
            forged.append(False, dbus.Array([dbus.ObjectPath(path)], variant_level=1), signature="bv")
            forged.set_destination(connection)
            self.bus.send_message(forged)
        driver.ListNames()

    def notice(self, service, generation, *keys):
        signal = dbus.lowlevel.SignalMessage("/org/tokenvault/Commits", "org.tokenvault.Commits", "Committed")
        changed = dbus.Array([(key, False) for key in keys], signature="(sb)")
        signal.append(service, dbus.UInt64(generation), changed, signature="sta(sb)")
        return signal

    def forge_notices(self, service, generation, key, count):
        """Tells everybody of a commit that there was not, and waits until the bus has told them."""
        for _ in range(int(count)):
            self.bus.send_message(self.notice(service, int(generation), key))
        dbus.Interface(self.bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus").ListNames()

    def start_forging(self, service):
        """Tells of commits of several changes without end, from a process of its own, as fast as those who listen
        now take it in: what the bus would have to keep for them grows no further."""
        program = (
            "import dbus.bus, dbus.exceptions, dbus.lowlevel, sys\n"
            "bus = dbus.bus.BusConnection(sys.argv[1])\n"
            "peer = 'org.freedesktop.DBus.Peer'\n"
            "names = bus.call_blocking("
            "'org.freedesktop.DBus', '/', 'org.freedesktop.DBus', 'ListNames', '', ())\n"
            "deaf = {bus.get_unique_name(), sys.argv[3]}\n"
            "listeners = [n for n in names if n.startswith(':') and n not in deaf]\n"
            "begun = False\n"
            "while True:\n"
            "    s = dbus.lowlevel.SignalMessage('/org/tokenvault/Commits', 'org.tokenvault.Commits', 'Committed')\n"
            "    keys = dbus.Array([('a', False), ('b', False)], signature='(sb)')\n"
            "    s.append(sys.argv[2], dbus.UInt64(2**51), keys, signature='sta(sb)')\n"
            "    bus.send_message(s)\n"
            "    bus.flush()\n"
            "    for listener in list(listeners):\n"
            "        try:\n"
            "            bus.call_blocking(listener, '/', peer, 'Ping', '', ())\n"
            "        except dbus.exceptions.DBusException:\n"
            "            listeners.remove(listener)\n"
            "    if not begun: print('begun', flush=True)\n"
            "    begun = True\n"
        )
        words = ["/usr/bin/python3", "-c", program, self.address, service, self.bus.get_unique_name()]
        self.forger = self.spawn(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.forger.stdout.readline()

    def forge_replies(self, serial):
        """Replies `(u)` to every call below `serial` of every connection but the service's, as if the bus or the
        service did, and waits until they have taken them in."""
        driver = dbus.Interface(self.bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus")
        if self.raw is None:
            self.raw, self.raw_name = connect_raw(f"{self.directory}/bus")
        others = [self.bus.get_unique_name(), self.raw_name, driver.GetNameOwner(SECRETS)]
        for connection in driver.ListNames():
            if connection.startswith(":") and connection not in others:
                for number in range(1, int(serial)):
                    self.raw.sendall(method_return(connection, number, serial=number))
                # The answer comes once the bus has passed on the replies.
                self.raw.sendall(call_driver("GetId", int(serial)))
                receive(self.raw, rb"[0-9a-f]{32}")
                self.wait_for(connection)

    # Monitors

    def start_monitor(self):
        """Listens to every message on the bus from now on."""
        self.monitor = self.spawn(
            ["dbus-monitor", "--address", self.address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        # A connection loses its name when it becomes a monitor.
        while b"NameLost" not in self.monitor.stdout.readline():
            pass

    def stop_monitor(self, *words):
        """For each word, how many of the lines that were heard have it."""
        marker = dbus.lowlevel.SignalMessage("/end", "org.example.Test", "EndOfMonitoring")
        self.bus.send_message(marker)
        self.bus.flush()
        heard = []
        while not heard or b"EndOfMonitoring" not in heard[-1]:
            heard.append(self.monitor.stdout.readline())
        self.monitor.kill()
        self.monitor.wait()
        return "\t".join(str(sum(word.encode() in line for line in heard)) for word in words)

    # A user at a terminal

    def converse(self, count, *words):
        """Runs the program of the first `count` words in a terminal, awaits each of the texts that follow, and
        types the one after it. Its exit status and all that was shown, escaped."""
        program, talk = words[: int(count)], words[int(count) :]
        process, terminal = pty.fork()
        if process == 0:
            end_with_parent()
            os.execve(program[0], program, self.environment)
        shown = b""
        for awaited, typed in zip(talk[::2], talk[1::2]):
            start = len(shown)
            while awaited.encode() not in shown[start:]:
                shown += os.read(terminal, 4096)
            os.write(terminal, typed.encode() + b"\r")
        while True:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # EIO: no process has it open any more.
                break
        os.close(terminal)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return f"{status}\t{shown.decode()!r}"

    # A service that misbehaves on command

    def start_fake(self, *scenario):
        self.fake = self.spawn(
            ["/usr/bin/python3", f"{HERE}/fake_service.py", *scenario],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self.fake.stdout.readline()

    def stop_fake(self):
        self.fake.kill()
        self.fake.wait()

    def fake_says(self):
        return self.fake.stdout.readline().decode().strip()

    # Running

    def stop(self):
        for process in (self.forger, self.fake, self.keyring, self.bus_process):
            if process and process.poll() is None:
                process.kill()
                process.wait()


if __name__ == "__main__":
    serve(Desktop(sys.argv[1]))
