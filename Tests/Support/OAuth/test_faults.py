"""What goes wrong on request, and what the provider has done by then."""

import hashlib
import http.client
import json
import socket
import threading
import time
from email.utils import parsedate_to_datetime

from fixture import Provider, ProviderTests


class FaultTests(ProviderTests):
    def fail(self, how, path="/o/token/", **more):
        self.provider.do("fail", path=path, how=how, **more)

    def assertUsed(self, tokens, used):
        """Whether the refresh token was taken."""
        self.assertEqual(self.provider.do("state", token=tokens["refresh_token"])["state"], "ended" if used else "live")

    def test_statuses_as_often_as_asked_and_with_their_headers(self):
        tokens = self.sign_in()
        self.fail("503", times=2, headers={"Retry-After": "2"})
        self.fail("429", body={"error": "slow_down"})
        answers = [self.refresh(tokens) for _ in range(4)]
        self.assertEqual([answer.status for answer in answers], [503, 503, 429, 200])
        self.assertEqual([answer.headers["Retry-After"] for answer in answers], ["2", "2", None, None])
        self.assertEqual(answers[0].headers["Content-Type"], "text/html")
        self.assertEqual(answers[2].headers["Content-Type"], "application/json")
        self.assertEqual(answers[2].json, {"error": "slow_down"})
        counts = self.provider.do("count")
        self.assertEqual((counts["requests"]["refresh_token"], counts["faults"]), (4, {"503": 2, "429": 1}))
        self.assertEqual(counts["answers"]["refresh_token"], {"200": 1})

    def test_a_status_after_the_deed(self):
        tokens = self.sign_in()
        self.fail("502-after")
        self.assertEqual(self.refresh(tokens).status, 502)
        self.assertUsed(tokens, True)

    def test_dropped_before_and_after_the_deed(self):
        for how, used in (("drop-before", False), ("drop-after", True)):
            tokens = self.sign_in()
            self.fail(how)
            with self.assertRaises(http.client.RemoteDisconnected):
                self.refresh(tokens)
            self.assertUsed(tokens, used)

    def test_garbage(self):
        tokens = self.sign_in()
        self.fail("garbage-json")
        answer = self.refresh(tokens)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"))
        with self.assertRaises(ValueError):
            json.loads(answer.body)
        self.assertUsed(tokens, False)

    def in_background(self, tokens):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.refresh(tokens)))
        thread.start()
        return thread, answers

    def test_held_until_released(self):
        for how, used in (("hang", False), ("hang-after", True), ("slow-body", True)):
            tokens = self.sign_in()
            self.fail(how)
            thread, answers = self.in_background(tokens)
            self.provider.do("held", count=1)
            self.assertUsed(tokens, used)
            self.assertEqual(self.provider.do("release")["released"], 1)
            thread.join()
            self.assertEqual(answers[0].status, 200)
            self.assertUsed(tokens, True)
            self.assertEqual(self.echo(answers[0].json["access_token"]).status, 200)

    def test_who_leaves_is_not_held(self):
        tokens = self.sign_in()
        self.fail("hang")
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port)
        form = f"grant_type=refresh_token&client_id={self.clients['browser']}&refresh_token={tokens['refresh_token']}"
        connection.request("POST", "/o/token/", form, {"Content-Type": "application/x-www-form-urlencoded"})
        self.provider.do("held", count=1)
        connection.close()
        self.provider.do("held", count=0)
        self.assertUsed(tokens, False)
        self.assertEqual(self.refresh(tokens).status, 200)

    def test_only_one_kind_of_grant(self):
        self.fail("500", grant_type="refresh_token")
        tokens = self.sign_in()
        self.assertEqual(self.refresh(tokens).status, 500)

    def test_other_paths(self):
        self.fail("500", path="/o/.well-known/openid-configuration")
        self.fail("200", path="/o/.well-known/jwks.json", body={"keys": []})
        self.assertEqual(self.ask("GET", "/o/.well-known/openid-configuration").status, 500)
        self.assertEqual(self.ask("GET", "/o/.well-known/jwks.json").json, {"keys": []})
        self.assertEqual(self.ask("GET", "/o/.well-known/openid-configuration").status, 200)

    def test_a_reset_takes_back_what_was_asked(self):
        self.fail("500", times=100)
        self.provider.do("lifetime", seconds=1)
        self.provider.do("reset")
        self.assertEqual(self.sign_in()["expires_in"], 3600)
        self.assertEqual(self.provider.do("count")["faults"], {})

    def test_a_clock_that_is_wrong(self):
        self.provider.do("skew", seconds=-5000)
        said = parsedate_to_datetime(self.ask("GET", "/api/echo").headers["Date"]).timestamp()
        self.assertAlmostEqual(said - time.time(), -5000, delta=300)

    def test_unknown_words_are_refused(self):
        for arguments in ({"how": "fall over"}, {"how": "503-later"}, {}):
            self.assertFalse(self.provider.try_do("fail", path="/", **arguments)["ok"])
        self.assertFalse(self.provider.try_do("nothing")["ok"])
        self.assertFalse(self.provider.try_do("visit")["ok"])


class EndTests(ProviderTests):
    def test_ends_with_its_input_though_requests_hang(self):
        provider = Provider()
        provider.do("fail", path="/api/echo", how="hang")
        connection = socket.create_connection(("127.0.0.1", provider.port))
        self.addCleanup(connection.close)
        connection.sendall(b"GET /api/echo HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        provider.do("held", count=1)
        provider.stop()
        self.assertEqual(provider.process.returncode, 0)
        self.assertEqual(connection.recv(1), b"")


class ResourceTests(ProviderTests):
    def test_says_what_came(self):
        tokens = self.sign_in()
        body = b"fake body" * 1000
        self.assertEqual(
            self.echo(tokens["access_token"], "POST", body).json,
            {"method": "POST", "length": len(body), "sha256": hashlib.sha256(body).hexdigest(), "user": "alice"},
        )
        request = self.provider.do("requests", count=1)["requests"][0]
        self.assertEqual((request["path"], request["status"], request["length"]), ("/api/echo", 200, len(body)))
        digest = hashlib.sha256(tokens["access_token"].encode()).hexdigest()
        self.assertEqual(request["authorization"], {"scheme": "Bearer", "sha256": digest})

    def test_takes_chunks_and_keeps_the_connection(self):
        tokens = self.sign_in()
        connection = http.client.HTTPConnection("127.0.0.1", self.provider.port)
        self.addCleanup(connection.close)
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        sockets = []
        for _ in range(2):
            connection.request("POST", "/api/echo", iter([b"fake ", b"body"]), headers, encode_chunked=True)
            sockets.append(connection.sock)
            answer = json.loads(connection.getresponse().read())
            self.assertEqual(answer["sha256"], hashlib.sha256(b"fake body").hexdigest())
        self.assertIs(*sockets)

    def test_challenges_who_has_no_token_and_who_has_a_wrong_one(self):
        without = self.ask("GET", "/api/echo")
        self.assertEqual((without.status, without.headers["WWW-Authenticate"]), (401, 'Bearer realm="api"'))
        wrong = self.echo("fake")
        self.assertEqual(wrong.status, 401)
        self.assertIn('error="invalid_token"', wrong.headers["WWW-Authenticate"])

    def test_redirects_where_it_is_told(self):
        answer = self.ask("GET", "/api/redirect?status=307&to=http%3A%2F%2F127.0.0.1%3A1%2Felsewhere")
        self.assertEqual((answer.status, answer.headers["Location"]), (307, "http://127.0.0.1:1/elsewhere"))

    def test_only_the_loopback_is_served(self):
        addresses = {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
        for address in addresses - {"127.0.0.1"}:
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection((address, self.provider.port))
