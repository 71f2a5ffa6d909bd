"""The device grant, RFC 8628."""

from fixture import ProviderTests
from provider import DEVICE_GRANT


class DeviceTests(ProviderTests):
    def begin(self, interval=0):
        self.provider.do("interval", seconds=interval)
        answer = self.post("/o/device-authorization/", client_id=self.clients["device"], scope="openid read")
        self.assertEqual(answer.status, 200)
        return answer.json

    def poll(self, device):
        return self.token(DEVICE_GRANT, "device", device_code=device["device_code"])

    def assertError(self, answer, error, status=400):
        self.assertEqual((answer.status, answer.json["error"]), (status, error))

    def test_approved(self):
        device = self.begin()
        self.assertEqual(
            sorted(device),
            ["device_code", "expires_in", "interval", "user_code", "verification_uri", "verification_uri_complete"],
        )
        self.assertError(self.poll(device), "authorization_pending")
        page = self.provider.do("approve-device", user_code=device["user_code"])
        self.assertIn("Authorized", page["body"])
        answer = self.poll(device)
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.echo(answer.json["access_token"]).json["user"], "alice")
        # A code gives one session.
        self.assertError(self.poll(device), "device_not_found", 404)
        self.assertEqual(self.provider.do("sessions")["families"], 1)
        self.assertEqual(self.refresh(answer.json, "device").status, 200)

    def test_approved_by_the_complete_address(self):
        device = self.begin()
        self.provider.do("approve-device", url=device["verification_uri_complete"], user="bob")
        self.assertEqual(self.echo(self.poll(device).json["access_token"]).json["user"], "bob")

    def test_denied(self):
        device = self.begin()
        self.provider.do("deny-device", user_code=device["user_code"])
        self.assertError(self.poll(device), "access_denied")

    def test_a_wrong_code_approves_nothing(self):
        device = self.begin()
        page = self.provider.do("approve-device", user_code="FAKE")
        self.assertIn("Incorrect user code", page["body"])
        self.assertError(self.poll(device), "authorization_pending")

    def test_expired(self):
        device = self.begin()
        self.provider.do("expire", user_code=device["user_code"])
        self.assertError(self.poll(device), "expired_token")

    def test_who_asks_too_fast_is_told_to_slow_down(self):
        device = self.begin(interval=1000)
        self.assertEqual(device["interval"], 1000)
        self.assertError(self.poll(device), "authorization_pending")
        self.assertError(self.poll(device), "slow_down")
        self.provider.do("approve-device", user_code=device["user_code"])
        self.assertEqual(self.poll(device).status, 200)

    def test_without_a_code(self):
        self.assertError(self.token(DEVICE_GRANT, "device"), "invalid_request")
