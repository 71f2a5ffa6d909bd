"""What stands between connections and the Django application: the record, the faults, the clock that is wrong."""

import json
import logging
import threading
import time
from wsgiref.handlers import format_date_time

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

from exchange import Answer, Request
from faults import Faults, Gate, close
from record import Record

TOKEN = "/o/token/"
REVOKE = "/o/revoke_token/"


class Front:
    """A WSGI application before another."""

    def __init__(self):
        self.application = None
        self.record = Record(TOKEN)
        self.faults = Faults()
        self.gate = Gate()
        self.date_skew = 0
        # SQLite has no `select_for_update`, with which a production database lets one of two refreshes of the same
        # token wait for the other.
        self.turn = threading.Lock()

    def __call__(self, environ, start_response):
        request = Request(environ)
        entry = self.record.begin(request)
        try:
            yield from self.answer(request, entry, start_response)
        finally:
            self.record.end(request)

    def answer(self, request, entry, start_response):
        fault = self.faults.take(request)
        kind = fault.kind if fault else None
        entry["fault"] = fault.how if fault else None
        answer = None
        if kind == "hang" and not fault.after:
            self.gate.hold(request.connection)
        if not fault or fault.after or kind == "hang":
            answer = self.ask(request)
        if kind == "hang" and fault.after:
            self.gate.hold(request.connection)
        if kind == "drop":
            close(request.connection)
        if kind == "garbage-json":
            answer = Answer(200, [("Content-Type", "application/json")], b'{"access_token": "fake')
        elif kind and kind.isdecimal():
            answer = injected(fault)
        answer.headers.append(("Date", format_date_time(time.time() + self.date_skew)))
        entry["status"] = answer.status
        answer.send(start_response)
        half = len(answer.body) // 2 if kind == "slow-body" else 0
        yield answer.body[:half]
        if half:
            self.gate.hold(request.connection)
        yield answer.body[half:]

    def ask(self, request):
        if request.path in (TOKEN, REVOKE):
            with self.turn:
                answer = request.ask(self.application)
        else:
            answer = request.ask(self.application)
        self.record.application_answered(request, answer)
        return answer


def injected(fault):
    body, kind = fault.body, "text/html"
    if body is None:
        body = f"<html><body><h1>{fault.kind}</h1></body></html>"
    elif not isinstance(body, str):
        body, kind = json.dumps(body), "application/json"
    return Answer(int(fault.kind), list(({"Content-Type": kind} | fault.headers).items()), body.encode())


class Handler(WSGIRequestHandler):
    # The head and the body are written one after the other, and the body must not wait for the head's receipt.
    disable_nagle_algorithm = True

    def get_environ(self):
        names = list(self.headers.keys())
        environ = super().get_environ()
        environ["tokenvault.header_names"] = names
        environ["tokenvault.connection"] = self.connection
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            environ["tokenvault.chunked_body"] = b"".join(iter(self.read_chunk, b""))
        return environ

    def read_chunk(self):
        size = int(self.rfile.readline().split(b";")[0], 16)
        chunk = self.rfile.read(size)
        self.rfile.readline()
        return chunk

    def log_message(self, format, *args):
        # The query may contain a code.
        status = args[1] if len(args) > 1 else "-"
        path = getattr(self, "path", "-").partition("?")[0]
        logging.getLogger("tokenvault.requests").info("%s %s %s", self.command, path, status)

    def get_stderr(self):
        return LogStream()


class LogStream:
    def write(self, text):
        if text.strip():
            logging.getLogger("tokenvault.requests").error("%s", text.rstrip())

    def flush(self):
        pass


class Server(ThreadedWSGIServer):
    # Room for all connections before the first is accepted.
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        logging.getLogger("tokenvault.requests").info("a connection ended early", exc_info=True)


def listen(front):
    """On a free port of the loopback; connections wait until the server serves."""
    server = Server(("127.0.0.1", 0), Handler)
    server.set_app(front)
    return server
