"""A provider for the tests of it, and a client of plain HTTP."""

import atexit
import base64
import functools
import hashlib
import http.client
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

HERE = Path(__file__).resolve().parent
LONGEST_WAIT = 3600


class Provider:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="oauth.")
        self.process = subprocess.Popen(
            [sys.executable, "-B", HERE / "server.py", self.directory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.facts = json.loads(self.process.stdout.readline())
        self.port = self.facts["port"]

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.directory)

    def try_do(self, name, **arguments):
        print(json.dumps({"do": name, **arguments}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def do(self, name, **arguments):
        answer = self.try_do(name, **arguments)
        if not answer["ok"]:
            raise AssertionError(answer["error"])
        return answer


@functools.cache
def shared_provider():
    provider = Provider()
    atexit.register(provider.stop)
    return provider


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Listener:
    """The loopback redirection of RFC 8252: one request is awaited, its query is kept."""

    def __init__(self):
        queries = self.queries = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                queries.append({name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"done")

            def log_message(self, *arguments):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/callback"
        self.thread = threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class ProviderTests(unittest.TestCase):
    """Each test finds the provider as at its start, but for the keys it signs with."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.provider = shared_provider()
        cls.clients = {name: client["id"] for name, client in cls.provider.facts["clients"].items()}

    def setUp(self):
        self.provider.do("reset", tokens=True)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port, timeout=LONGEST_WAIT)
        self.addCleanup(connection.close)
        connection.request(method, path, body, headers or {})
        return Answer(connection.getresponse())

    def post(self, path, **form):
        return self.ask("POST", path, urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"})

    def token(self, grant_type, client, **form):
        return self.post("/o/token/", grant_type=grant_type, client_id=self.clients[client], **form)

    def refresh(self, tokens, client="browser"):
        return self.token("refresh_token", client, refresh_token=tokens["refresh_token"])

    def echo(self, access_token, method="GET", body=None):
        return self.ask(method, "/api/echo", body, {"Authorization": f"Bearer {access_token}"})

    def authorization(self, listener, method="S256", **more):
        """The URL that a browser is sent to, and the verifier."""
        verifier = secrets.token_urlsafe(48)
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.clients["browser"],
            "redirect_uri": listener.url,
            "scope": "openid email read",
            "state": "fake-state",
            "nonce": "fake-nonce",
            "code_challenge": digest if method == "S256" else verifier,
            "code_challenge_method": method,
        } | more
        query = {name: value for name, value in query.items() if value is not None}
        return f"{self.provider.facts['issuer']}/authorize/?{urlencode(query)}", verifier

    def listen(self):
        listener = Listener()
        self.addCleanup(listener.close)
        return listener

    def exchange(self, listener, verifier, code=None):
        code = code or listener.queries[-1]["code"]
        return self.token("authorization_code", "browser", code=code, redirect_uri=listener.url, code_verifier=verifier)

    def sign_in(self, user="alice", **more):
        listener = self.listen()
        url, verifier = self.authorization(listener, **more)
        page = self.provider.do("browse", url=url, user=user)
        self.assertEqual((page["status"], page["body"], page["url"]), (200, "done", listener.url))
        answer = self.exchange(listener, verifier)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json
