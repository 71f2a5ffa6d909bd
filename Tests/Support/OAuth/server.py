"""A real OAuth provider for tests: django-oauth-toolkit on a free port of the loopback.

Usage: server.py DIRECTORY, which has its database and its log. Says a line of JSON when it serves: `issuer`, `users`,
`clients`, `redirects`. Then reads one command a line from standard input, `{"do": NAME, ...}`, and answers each with
one line, `{"ok": true, ...}` or `{"ok": false, "error": ...}`. The methods of `Keeper` are the commands, with `-` for
`_` in their names. At the end of input, which is also how the end of the test process looks from here, it ends.
"""

import json
import logging
import os
import sys
import threading
from urllib.parse import urlsplit

from front import Front, listen
from signing import make_key, rotate


class Keeper:
    def __init__(self, directory):
        self.front = Front()
        self.server = listen(self.front)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

        import provider

        self.directory = directory
        self.facts = provider.set_up(directory, self.origin, make_key())

        # These modules can be imported once Django is set up.
        import grants
        import ledger
        from django.core.wsgi import get_wsgi_application
        from oauth2_provider.settings import oauth2_settings

        self.grants, self.ledger, self.settings, self.knobs = grants, ledger, oauth2_settings, provider.KNOBS
        self.front.application = get_wsgi_application()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def start(self):
        return {"origin": self.origin, "port": self.server.server_port, "issuer": f"{self.origin}/o", **self.facts}

    # Requests

    def count(self):
        return self.front.record.counts() | {"faults": dict(self.front.faults.used)}

    def requests(self, count=100):
        return {"requests": self.front.record.last(count)}

    def reset(self, tokens=False):
        """Counts, faults and settings as at the start; those that are held go on. With `tokens`, no token is left."""
        for name, value in self.knobs.items():
            setattr(self.settings, name, value)
        self.skew(0)
        self.front.faults.clear()
        self.front.gate.release()
        self.front.record.clear()
        if tokens:
            self.ledger.clear()

    # Faults

    def fail(self, path, how, times=1, headers=None, body=None, grant_type=None, method=None):
        from faults import Fault

        self.front.faults.add(Fault(path, how, times, headers, body, grant_type, method))

    def held(self, count):
        """Returns when so many requests hang."""
        self.front.gate.await_held(count)

    def release(self):
        return {"released": self.front.gate.release()}

    def skew(self, seconds, id_token=False):
        """The clock that `Date` is from; with `id_token`, also the one that ID tokens are dated by."""
        self.front.date_skew = seconds
        self.grants.id_token_skew = seconds if id_token else 0

    def encrypt(self, name="127.0.0.1", version=None, ciphers=None):
        """Serves with TLS as well, on another port, by a certificate for `name` that it signed itself; with a version and
        ciphers, by these alone.

        Its key is in the file as well."""
        import encryption

        file = f"{self.directory}/certificate"
        port, pem = encryption.serve(self.front, name, file, version, ciphers)
        return {"port": port, "certificate": pem, "file": file}

    def proxy(self):
        """Starts a proxy that opens a tunnel to this machine for every host."""
        from connect_proxy import ConnectProxy

        self.connect_proxy = ConnectProxy()
        return {"port": self.connect_proxy.port}

    def proxied(self):
        return {"requests": self.connect_proxy.requests}

    # Settings of the provider

    def lifetime(self, seconds, id_token=None):
        self.settings.ACCESS_TOKEN_EXPIRE_SECONDS = seconds
        if id_token is not None:
            self.settings.ID_TOKEN_EXPIRE_SECONDS = id_token

    def grace(self, seconds):
        self.settings.REFRESH_TOKEN_GRACE_PERIOD_SECONDS = seconds

    def interval(self, seconds):
        self.settings.DEVICE_FLOW_INTERVAL = seconds

    def rotate_key(self, keep=True):
        return {"keys": rotate(self.settings, keep)}

    # Contents of the provider

    def sessions(self, user=None):
        return self.ledger.sessions(user)

    def state(self, token):
        return {"state": self.ledger.state(token)}

    def expire(self, token=None, user_code=None):
        if user_code is not None:
            self.ledger.expire_device(user_code)
        else:
            self.ledger.expire(token)

    def revoke(self, token):
        self.ledger.revoke(token)

    # Actions of a user

    def visit(self, user, url, approve, user_code=None):
        from browser import Browser

        account = next(account for account in self.facts["users"] if account["name"] == user)
        pages = Browser(account["name"], account["password"]).answer(url, approve, user_code)
        last = pages[-1]
        # The final address without its query, which may contain a code.
        parts = urlsplit(last.url)
        return {
            "status": last.status,
            "body": last.body,
            "url": f"{parts.scheme}://{parts.netloc}{parts.path}",
            "pages": len(pages),
        }

    def browse(self, url, user="alice"):
        return self.visit(user, url, True)

    def deny(self, url, user="alice"):
        return self.visit(user, url, False)

    def approve_device(self, user_code=None, url=None, user="alice"):
        return self.visit(user, url or f"{self.origin}/o/device/", True, user_code)

    def deny_device(self, user_code=None, url=None, user="alice"):
        return self.visit(user, url or f"{self.origin}/o/device/", False, user_code)


COMMANDS = {
    name.replace("_", "-"): method
    for name, method in vars(Keeper).items()
    if callable(method) and not name.startswith("_") and name not in ("start", "visit")
}


def obey(keeper, line):
    try:
        arguments = {name.replace("-", "_"): value for name, value in json.loads(line).items()}
        return {"ok": True} | (COMMANDS[arguments.pop("do")](keeper, **arguments) or {})
    except Exception as error:
        logging.getLogger("tokenvault").exception("a command failed")
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}


def main():
    answers = sys.stdout
    # No other code prints to the original output.
    sys.stdout = sys.stderr
    keeper = Keeper(sys.argv[1])
    print(json.dumps({"ok": True} | keeper.start()), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(obey(keeper, line)), file=answers, flush=True)
    # Does not wait for requests that hang.
    os._exit(0)


if __name__ == "__main__":
    main()
