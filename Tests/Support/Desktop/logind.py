"""A system bus of its own for tests, with python-dbusmock's logind on it.

Usage: logind.py DIRECTORY. Its methods are what a test may have done: see `commands.py`.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time

import dbus
import dbus.bus
import dbus.lowlevel

from commands import serve

LOGIN = "org.freedesktop.login1"
ROOT = "/org/freedesktop/login1"
MANAGER = "org.freedesktop.login1.Manager"
SESSION = "org.freedesktop.login1.Session"
MOCK = "org.freedesktop.DBus.Mock"


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def session_path(name):
    return f"{ROOT}/session/{name}"


class Login:
    def __init__(self, directory):
        self.directory = directory
        self.address = f"unix:path={directory}/bus"
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": directory,
            "DBUS_SYSTEM_BUS_ADDRESS": self.address,
            "LC_ALL": "C.UTF-8",
        }
        self.log = open(f"{directory}/log", "w")
        self.bus_process = None
        self.mock = None

    def spawn(self, words, **more):
        return subprocess.Popen(
            words, env=self.environment, stdin=subprocess.DEVNULL, stderr=self.log, preexec_fn=end_with_parent,
            cwd="/", **more
        )

    # The bus

    def start_bus(self):
        config = f"{self.directory}/bus.conf"
        with open(config, "w") as file:
            file.write(
                "<busconfig><type>system</type>"
                f"<listen>{self.address}</listen><auth>EXTERNAL</auth>"
                '<policy context="default"><allow send_destination="*" eavesdrop="true"/>'
                '<allow eavesdrop="true"/><allow own="*"/></policy></busconfig>\n'
            )
        self.bus_process = self.spawn(
            ["dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile", "--print-address"],
            stdout=subprocess.PIPE,
        )
        # The bus prints its address once it listens.
        self.bus_process.stdout.readline()
        self.bus = dbus.bus.BusConnection(self.address)
        self.bus.set_exit_on_disconnect(False)

    def stop_bus(self):
        self.bus_process.kill()
        self.bus_process.wait()
        os.unlink(f"{self.directory}/bus")
        self.stop_logind()

    # logind

    def start_logind(self, own=""):
        """Every process is in the session `own`; in none without."""
        self.mock = self.spawn(
            ["/usr/bin/python3", "-m", "dbusmock", "--system", "--template", "logind"], stdout=subprocess.DEVNULL
        )
        subprocess.run(
            ["gdbus", "wait", "--system", LOGIN, "--timeout", "300"], env=self.environment, check=True
        )
        code = f"ret = dbus.ObjectPath('{session_path(own)}')"
        if not own:
            code = "raise dbus.exceptions.DBusException('none', name='org.freedesktop.login1.NoSessionForPID')"
        self.on(ROOT, MOCK).AddMethod(MANAGER, "GetSessionByPID", "u", "o", code)

    def stop_logind(self):
        if self.mock:
            self.mock.kill()
            self.mock.wait()

    def on(self, path, interface):
        return dbus.Interface(self.bus.get_object(LOGIN, path, introspect=False), interface)

    def add_session(self, name, user):
        self.on(ROOT, MOCK).AddSession(name, "seat0", dbus.UInt32(user), f"user{user}", True)
        self.tell("SessionNew", name)

    def end_session(self, name):
        self.on(ROOT, MOCK).RemoveObject(session_path(name))
        self.tell("SessionRemoved", name)

    def tell(self, signal_name, name):
        arguments = [name, dbus.ObjectPath(session_path(name))]
        self.on(ROOT, MOCK).EmitSignal(MANAGER, signal_name, "so", arguments)

    def lock(self, name):
        self.on(session_path(name), SESSION).Lock()

    def sleep(self, begins):
        self.on(ROOT, MOCK).EmitSignal(MANAGER, "PrepareForSleep", "b", [begins == "begins"])

    def fail_inhibit(self, error):
        code = f"raise dbus.exceptions.DBusException('refused', name='{error}')"
        self.on(ROOT, MOCK).AddMethod(MANAGER, "Inhibit", "ssss", "h", code)

    def come_anew_and_stall(self, seconds):
        """Owns its name anew, and answers the first question after that only when so many seconds are over."""
        mock = self.on(ROOT, MOCK)
        stall = (
            f"waits = 0 if getattr(self, 'has_stalled', False) else {seconds}; self.has_stalled = True; "
            f"__import__('time').sleep(waits); ret = dbus.ObjectPath('{session_path('one')}')"
        )
        mock.AddMethod(MANAGER, "GetSessionByPID", "u", "o", stall)
        renew = f"self.connection.release_name('{LOGIN}'); self.connection.request_name('{LOGIN}')"
        mock.AddMethod("local.Test", "Renew", "", "", renew)
        owner = self.bus.get_name_owner(LOGIN)
        dbus.Interface(self.bus.get_object(owner, ROOT, introspect=False), "local.Test").Renew()

    def inhibitors(self):
        return len(self.on(ROOT, MANAGER).ListInhibitors())

    def await_inhibitors(self, count):
        """Until that many are held, for five minutes at most, and what the last of them said."""
        end = time.monotonic() + 300
        while time.monotonic() < end:
            inhibitors = self.on(ROOT, MANAGER).ListInhibitors()
            if len(inhibitors) == int(count):
                return "\t".join(str(word) for word in inhibitors[-1][:4]) if inhibitors else None
        raise TimeoutError(f"{len(inhibitors)} are held")

    def forge(self, name):
        """What logind says before sleep and to lock the session, said by another program to every connection, which all
        have taken it in afterwards."""
        driver = dbus.Interface(self.bus.get_object("org.freedesktop.DBus", "/"), "org.freedesktop.DBus")
        forger = dbus.bus.BusConnection(self.address)
        listeners = [
            connection
            for connection in driver.ListNames()
            if connection.startswith(":")
            and connection not in (self.bus.get_unique_name(), forger.get_unique_name(), driver.GetNameOwner(LOGIN))
        ]
        for listener in listeners:
            lock = dbus.lowlevel.SignalMessage(session_path(name), SESSION, "Lock")
            sleep = dbus.lowlevel.SignalMessage(ROOT, MANAGER, "PrepareForSleep")
            sleep.append(True, signature="b")
            removed = dbus.lowlevel.SignalMessage(ROOT, MANAGER, "SessionRemoved")
            removed.append(name, dbus.ObjectPath(session_path(name)), signature="so")
            owner = dbus.lowlevel.SignalMessage(
                "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged"
            )
            owner.append(LOGIN, "", forger.get_unique_name(), signature="sss")
            for message in (owner, lock, sleep, removed):
                message.set_destination(listener)
                forger.send_message(message)
            forger.flush()
            forger.call_blocking(listener, "/", "org.freedesktop.DBus.Peer", "Ping", "", ())
        forger.close()
        return str(len(listeners))

    def stop(self):
        for process in (self.mock, self.bus_process):
            if process and process.poll() is None:
                process.kill()
                process.wait()


if __name__ == "__main__":
    serve(Login(sys.argv[1]))
