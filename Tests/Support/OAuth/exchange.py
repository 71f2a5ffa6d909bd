"""One request and its answer as values, between a connection and the application."""

import hashlib
import io
from http.client import responses
from urllib.parse import parse_qs


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def send(self, start_response):
        """Says the head; the body is the caller's to give."""
        kept = [(name, value) for name, value in self.headers if name.lower() != "content-length"]
        phrase = responses.get(self.status, "Unknown")
        start_response(f"{self.status} {phrase}", [*kept, ("Content-Length", str(len(self.body)))])


class Request:
    """Read whole from its connection, so that a connection that is closed afterwards ends and is not reset."""

    def __init__(self, environ):
        self.environ = environ
        self.connection = environ["tokenvault.connection"]
        self.method = environ["REQUEST_METHOD"]
        self.path = environ["PATH_INFO"]
        self.header_names = environ["tokenvault.header_names"]
        chunked = environ.get("tokenvault.chunked_body")
        self.body = environ["wsgi.input"].read() if chunked is None else chunked
        form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
        self.form = parse_qs(self.body.decode("latin-1"), keep_blank_values=True) if form else {}
        self.query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)

    @property
    def grant_type(self):
        return self.form.get("grant_type", [""])[0]

    @property
    def authorization(self):
        """The scheme and a digest of what follows: enough to tell which token it was."""
        header = self.environ.get("HTTP_AUTHORIZATION")
        if header is None:
            return None
        scheme, _, rest = header.partition(" ")
        return {"scheme": scheme, "sha256": hashlib.sha256(rest.encode("latin-1")).hexdigest()}

    def ask(self, application):
        """The answer of a WSGI application, whole."""
        said = []
        environ = self.environ | {"wsgi.input": io.BytesIO(self.body), "CONTENT_LENGTH": str(len(self.body))}
        chunks = application(environ, lambda status, headers, failure=None: said.append((status, headers)))
        try:
            body = b"".join(chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        status, headers = said[-1]
        return Answer(int(status.split(" ")[0]), headers, body)
