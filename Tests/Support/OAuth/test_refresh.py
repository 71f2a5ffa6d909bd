"""Refreshing: tokens rotate, one that comes back ends its family, the grace period, revocation."""

import base64
import json
import threading

from fixture import ProviderTests


class RefreshTests(ProviderTests):
    def test_rotates_and_ends_the_access_token_before(self):
        first = self.sign_in()
        answer = self.refresh(first)
        self.assertEqual(answer.status, 200)
        self.assertNotEqual(answer.json["refresh_token"], first["refresh_token"])
        # The answer has a new ID token, without a nonce.
        self.assertEqual(
            sorted(answer.json), ["access_token", "expires_in", "id_token", "refresh_token", "scope", "token_type"]
        )
        payload = answer.json["id_token"].split(".")[1]
        self.assertNotIn("nonce", json.loads(base64.urlsafe_b64decode(payload + "==")))
        self.assertEqual(self.echo(first["access_token"]).status, 401)
        self.assertEqual(self.echo(answer.json["access_token"]).status, 200)
        self.assertEqual(self.provider.do("sessions")["families"], 1)

    def test_a_token_that_comes_back_ends_its_family(self):
        first, other = self.sign_in(), self.sign_in()
        second = self.refresh(first).json
        again = self.refresh(first)
        self.assertEqual((again.status, again.json), (400, {"error": "invalid_grant"}))
        self.assertEqual(self.echo(second["access_token"]).status, 401)
        self.assertEqual(self.refresh(second).json, {"error": "invalid_grant"})
        # The other session goes on.
        self.assertEqual(self.refresh(other).status, 200)
        self.assertEqual(self.provider.do("sessions")["families"], 1)

    def test_within_the_grace_period_the_same_tokens_are_given_again(self):
        self.provider.do("grace", seconds=100)
        first = self.sign_in()
        second = self.refresh(first).json
        again = self.refresh(first)
        self.assertEqual(again.status, 200)
        for name in ("access_token", "refresh_token"):
            self.assertEqual(again.json[name], second[name])
        self.assertEqual(self.refresh(second).status, 200)

    def test_two_generations_back_ends_the_family_in_the_grace_period_too(self):
        self.provider.do("grace", seconds=100)
        first = self.sign_in()
        third = self.refresh(self.refresh(first).json).json
        self.assertEqual(self.refresh(first).json, {"error": "invalid_grant"})
        self.assertEqual(self.refresh(third).json, {"error": "invalid_grant"})

    def at_once(self, tokens, count):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.refresh(tokens))) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def test_of_fifty_at_once_one_is_answered_and_the_family_ends(self):
        tokens = self.sign_in()
        answers = self.at_once(tokens, 50)
        self.assertEqual(sorted(answer.status for answer in answers), [200] + [400] * 49)
        counts = self.provider.do("count")
        self.assertEqual(counts["requests"]["refresh_token"], 50)
        self.assertEqual(counts["answers"]["refresh_token"], {"200": 1, "400 invalid_grant": 49})
        self.assertEqual(self.provider.do("sessions")["families"], 0)

    def test_fifty_at_once_get_the_same_in_the_grace_period(self):
        self.provider.do("grace", seconds=100)
        answers = self.at_once(self.sign_in(), 50)
        self.assertEqual({answer.status for answer in answers}, {200})
        self.assertEqual(len({answer.json["refresh_token"] for answer in answers}), 1)
        sessions = self.provider.do("sessions")
        self.assertEqual((sessions["refresh_tokens"], sessions["families"]), (1, 1))

    def test_revoked(self):
        for hint in ("refresh_token", "access_token"):
            tokens = self.sign_in()
            answer = self.post(
                "/o/revoke_token/", token=tokens[hint], token_type_hint=hint, client_id=self.clients["browser"]
            )
            self.assertEqual((answer.status, answer.body), (200, b""))
            self.assertEqual(self.echo(tokens["access_token"]).status, 401)
            self.assertEqual(self.refresh(tokens).json, {"error": "invalid_grant"})
        # RFC 7009, section 2.2: an unknown token counts as revoked.
        answer = self.post("/o/revoke_token/", token="fake", client_id=self.clients["browser"])
        self.assertEqual((answer.status, answer.body), (200, b""))

    def test_expired(self):
        tokens = self.sign_in()
        self.provider.do("expire", token=tokens["access_token"])
        self.assertEqual(self.echo(tokens["access_token"]).status, 401)
        self.assertEqual(self.provider.do("state", token=tokens["refresh_token"])["state"], "live")
        second = self.refresh(tokens).json
        self.provider.do("expire", token=second["refresh_token"])
        self.assertEqual(self.echo(second["access_token"]).status, 200)
        self.assertEqual(self.refresh(second).json, {"error": "invalid_grant"})

    def test_signed_out_everywhere(self):
        tokens = self.sign_in()
        self.provider.do("revoke", token=tokens["access_token"])
        self.assertEqual(self.echo(tokens["access_token"]).status, 401)
        self.assertEqual(self.refresh(tokens).json, {"error": "invalid_grant"})

    def test_a_lifetime_is_that_of_the_next_token(self):
        self.provider.do("lifetime", seconds=7)
        tokens = self.sign_in()
        self.assertEqual(tokens["expires_in"], 7)
        self.provider.do("lifetime", seconds=9)
        self.assertEqual(self.refresh(tokens).json["expires_in"], 9)

    def test_no_token_is_said_or_logged(self):
        tokens = self.sign_in()
        self.refresh(tokens)
        self.refresh(tokens)
        said = str(self.provider.do("requests")) + str(self.provider.do("count"))
        with open(f"{self.provider.directory}/log") as log:
            said += log.read()
        for name in ("access_token", "refresh_token", "id_token"):
            self.assertNotIn(tokens[name], said)
