"""What goes wrong between a client and the application, when a test asks for it.

before the application sees the request: a status (`503`), `drop-before`, `hang`, `garbage-json`;
after it has done what was asked, whose outcome the client then cannot know: `503-after`, `drop-after`, `hang-after`,
`slow-body`.
"""

import contextlib
import selectors
import socket
import threading

LONGEST_WAIT = 3600


class Gone(ConnectionAbortedError):
    """The connection was closed without an answer. Its parent is what servers take for a client that left."""


class Fault:
    def __init__(self, path, how, times=1, headers=None, body=None, grant_type=None, method=None):
        self.kind, _, when = how.partition("-")
        if how in ("slow-body", "garbage-json"):
            self.kind, when = how, "after" if how == "slow-body" else ""
        if when not in ("", "before", "after") or not self.kind.isdecimal() and self.kind not in (
            "drop", "hang", "slow-body", "garbage-json",
        ):
            raise ValueError(f"no fault is {how!r}")
        self.how = how
        self.after = when == "after"
        self.path, self.grant_type, self.method = path, grant_type, method
        self.times = times
        self.headers = headers or {}
        self.body = body

    def matches(self, request):
        return (
            self.times > 0
            and self.path == request.path
            and self.grant_type in (None, request.grant_type)
            and self.method in (None, request.method)
        )


class Faults:
    """In the order they were asked for, each until it is used up."""

    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        with self.lock:
            self.waiting = []
            self.used = {}

    def add(self, fault):
        with self.lock:
            self.waiting.append(fault)

    def take(self, request):
        with self.lock:
            for fault in self.waiting:
                if fault.matches(request):
                    fault.times -= 1
                    self.used[fault.how] = self.used.get(fault.how, 0) + 1
                    return fault
        return None


class Held:
    """Those that one release lets go on."""

    def __init__(self):
        self.count = 0
        self.closed, self.opening = socket.socketpair()


class Gate:
    """Where requests are held until a test releases them or their client leaves."""

    def __init__(self):
        self.changed = threading.Condition()
        self.held = Held()

    def hold(self, connection):
        with self.changed:
            held = self.held
            held.count += 1
            self.changed.notify_all()
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(held.closed, selectors.EVENT_READ)
                # No client sends a request before the previous answer: this is the end of the connection.
                selector.register(connection, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select()]
            if held.closed not in ready:
                close(connection)
        finally:
            with self.changed:
                held.count -= 1
                self.changed.notify_all()

    def release(self):
        """Those that are held, not those to come; how many."""
        with self.changed:
            released, self.held = self.held, Held()
            count = released.count
            # The other end, which the held threads watch, becomes readable.
            released.opening.close()
            self.changed.wait_for(lambda: released.count == 0, LONGEST_WAIT)
            released.closed.close()
            return count

    def await_held(self, count):
        with self.changed:
            if not self.changed.wait_for(lambda: self.held.count == count, LONGEST_WAIT):
                raise TimeoutError(f"{self.held.count} are held")


def close(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    raise Gone()
