"""Authorization code with PKCE: what is accepted and what is not; ID tokens; discovery."""

import json
import subprocess
import sys
import time
from urllib.parse import urlsplit

from jwcrypto import jwk, jwt

from browser import Browser
from fixture import HERE, ProviderTests


class CodeTests(ProviderTests):
    def test_a_code_becomes_tokens_once(self):
        listener = self.listen()
        url, verifier = self.authorization(listener)
        page = self.provider.do("browse", url=url)
        self.assertEqual((page["status"], page["body"], page["url"]), (200, "done", listener.url))
        query = listener.queries[-1]
        # RFC 9207: the issuer of the answer.
        self.assertEqual((query["state"], query["iss"]), ("fake-state", self.provider.facts["issuer"]))
        answer = self.exchange(listener, verifier)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertEqual(
            sorted(answer.json), ["access_token", "expires_in", "id_token", "refresh_token", "scope", "token_type"]
        )
        self.assertEqual((answer.json["token_type"], answer.json["expires_in"]), ("Bearer", 3600))
        again = self.exchange(listener, verifier)
        self.assertEqual((again.status, again.json["error"]), (400, "invalid_grant"))

    def test_a_wrong_verifier_is_refused(self):
        listener = self.listen()
        url, verifier = self.authorization(listener)
        self.provider.do("browse", url=url)
        answer = self.exchange(listener, verifier[::-1] + "x")
        self.assertEqual((answer.status, answer.json["error"]), (400, "invalid_grant"))

    def test_plain_and_no_challenge_are_refused(self):
        for more in ({"method": "plain"}, {"code_challenge": None, "code_challenge_method": None}):
            listener = self.listen()
            url, _ = self.authorization(listener, **more)
            self.provider.do("browse", url=url)
            self.assertEqual(listener.queries[-1]["error"], "invalid_request", more)
            self.assertNotIn("code", listener.queries[-1])

    def test_a_challenge_without_a_method_is_plain_and_refused(self):
        listener = self.listen()
        url, _ = self.authorization(listener, code_challenge_method=None)
        self.provider.do("browse", url=url)
        self.assertEqual(listener.queries[-1]["error"], "invalid_request")

    def test_who_denies_comes_back_with_an_error(self):
        listener = self.listen()
        url, _ = self.authorization(listener)
        page = self.provider.do("deny", url=url)
        self.assertEqual(page["status"], 200)
        query = listener.queries[-1]
        self.assertEqual((query["error"], query["state"]), ("access_denied", "fake-state"))

    def test_redirects_go_to_any_port_of_the_loopback_and_nowhere_else(self):
        for redirect in ("http://127.0.0.1:1/other", "http://localhost:1/callback", "http://127.0.0.2/callback"):
            url, _ = self.authorization(self.listen(), redirect_uri=redirect)
            page = self.provider.do("browse", url=url)
            self.assertEqual(page["status"], 400, redirect)
            self.assertEqual(page["url"], f"{self.provider.facts['issuer']}/authorize/")

    def test_a_wrong_password_stays_at_the_form(self):
        account = self.provider.facts["users"][0]
        url, _ = self.authorization(self.listen())
        pages = Browser(account["name"], "fake and wrong").answer(url)
        self.assertEqual(urlsplit(pages[-1].url).path, "/login/")

    def test_the_browser_is_a_program_too(self):
        account = self.provider.facts["users"][1]
        listener = self.listen()
        url, verifier = self.authorization(listener)
        program = [sys.executable, "-B", HERE / "browser.py", account["name"], account["password"], url]
        self.assertEqual(subprocess.run(program, capture_output=True, check=True).stdout, b"200\n")
        self.assertEqual(self.echo(self.exchange(listener, verifier).json["access_token"]).json["user"], "bob")

    def test_the_browser_leaves_the_loopback_for_nobody(self):
        page = self.provider.try_do("browse", url="http://example.invalid/")
        self.assertEqual((page["ok"], page["error"]), (False, "ValueError: not on the loopback"))

    def test_accounts_are_apart(self):
        alice, bob = self.sign_in("alice"), self.sign_in("bob")
        self.assertEqual(self.echo(alice["access_token"]).json["user"], "alice")
        self.assertEqual(self.echo(bob["access_token"]).json["user"], "bob")
        self.assertEqual(self.provider.do("sessions", user="bob")["families"], 1)
        self.assertEqual(self.provider.do("sessions")["families"], 2)

    def test_a_service_signs_in_as_itself(self):
        secret = self.provider.facts["clients"]["service"]["secret"]
        answer = self.token("client_credentials", "service", client_secret=secret, scope="read")
        self.assertEqual(answer.status, 200)
        self.assertNotIn("refresh_token", answer.json)
        self.assertEqual(self.echo(answer.json["access_token"]).json["user"], None)
        wrong = self.token("client_credentials", "service", client_secret="fake and wrong", scope="read")
        self.assertEqual((wrong.status, wrong.json["error"]), (401, "invalid_client"))


class IDTokenTests(ProviderTests):
    def keys(self):
        return jwk.JWKSet.from_json(self.ask("GET", "/o/.well-known/jwks.json").body.decode())

    def claims(self, tokens):
        verified = jwt.JWT(jwt=tokens["id_token"], key=self.keys(), algs=["RS256"], check_claims={
            "iss": self.provider.facts["issuer"], "aud": self.clients["browser"], "nonce": "fake-nonce", "exp": None,
        })
        return json.loads(verified.claims)

    def test_says_who_for_whom_and_until_when(self):
        claims = self.claims(self.sign_in())
        self.assertEqual((claims["sub"], claims["email"]), ("1", "alice@example.com"))
        self.assertAlmostEqual(claims["exp"] - claims["iat"], 3600, delta=2)

    def test_by_another_clock(self):
        self.provider.do("skew", seconds=1000, id_token=True)
        claims = self.claims(self.sign_in())
        self.assertAlmostEqual(claims["iat"] - time.time(), 1000, delta=100)
        self.assertAlmostEqual(claims["exp"] - claims["iat"], 3600, delta=2)

    def test_a_new_key_signs_and_the_old_one_stays_or_goes(self):
        self.provider.do("rotate-key", keep=False)
        before = self.sign_in()
        names = self.provider.do("rotate-key", keep=True)["keys"]
        published = self.ask("GET", "/o/.well-known/jwks.json").json["keys"]
        self.assertEqual([key["kid"] for key in published], names)
        self.assertEqual(len(set(names)), 2)
        self.claims(before)
        self.provider.do("rotate-key", keep=False)
        after = self.sign_in()
        with self.assertRaises(jwt.JWTMissingKey):
            self.claims(before)
        self.claims(after)


class DiscoveryTests(ProviderTests):
    def test_both_documents_lead_to_what_is_there(self):
        issuer = self.provider.facts["issuer"]
        openid = self.ask("GET", "/o/.well-known/openid-configuration")
        server = self.ask("GET", "/.well-known/oauth-authorization-server/o")
        for document in (openid, server):
            self.assertEqual((document.status, document.json["issuer"]), (200, issuer))
            self.assertEqual(document.json["code_challenge_methods_supported"], ["S256"])
            for name in ("authorization", "token", "revocation", "device_authorization", "introspection"):
                url = document.json[f"{name}_endpoint"]
                self.assertTrue(url.startswith(issuer), url)
                self.assertNotEqual(self.ask("GET", urlsplit(url).path).status, 404, url)
        self.assertEqual(self.ask("GET", urlsplit(openid.json["jwks_uri"]).path).status, 200)
        tokens = self.sign_in()
        path = urlsplit(openid.json["userinfo_endpoint"]).path
        claims = self.ask("GET", path, headers={"Authorization": f"Bearer {tokens['access_token']}"})
        self.assertEqual((claims.status, claims.json["email"]), (200, "alice@example.com"))
