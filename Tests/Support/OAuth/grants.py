"""What django-oauth-toolkit leaves to a site: claims, the pace of a device that asks, codes that are used once."""

import json
import threading
import time

from django.http import JsonResponse
from oauth2_provider import views
from oauth2_provider.models import get_device_grant_model
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings

from provider import DEVICE_GRANT

# How many seconds the clock that dates ID tokens is ahead.
id_token_skew = 0

# RFC 8628, section 3.5: how many seconds longer a device has to wait after each `slow_down`.
PENALTY = 5


class Validator(OAuth2Validator):
    def get_additional_claims(self):
        return {
            "preferred_username": lambda request: request.user.username,
            "given_name": lambda request: request.user.first_name,
            "email": lambda request: request.user.email,
        }

    def finalize_id_token(self, id_token, token, token_handler, request):
        id_token["iat"] += id_token_skew
        return super().finalize_id_token(id_token, token, token_handler, request)

    def get_id_token_dictionary(self, token, token_handler, request):
        claims, expiration = super().get_id_token_dictionary(token, token_handler, request)
        claims["exp"] += id_token_skew
        return claims, expiration


class Pace:
    """When devices asked last, and how long each has to wait."""

    def __init__(self):
        self.lock = threading.Lock()
        self.last = {}

    def is_too_fast(self, device_code, interval):
        now = time.monotonic()
        with self.lock:
            asked, wait = self.last.get(device_code, (None, interval))
            too_fast = asked is not None and interval > 0 and now - asked < wait
            self.last[device_code] = (now, wait + PENALTY if too_fast else wait)
            return too_fast


class DeviceAuthorizationView(views.DeviceAuthorizationView):
    def post(self, request, *args, **kwargs):
        response = super().post(request, *args, **kwargs)
        if response.status_code != 200:
            return response
        # The toolkit keeps the interval of its start.
        return JsonResponse(json.loads(response.content) | {"interval": oauth2_settings.DEVICE_FLOW_INTERVAL})


class TokenView(views.TokenView):
    pace = Pace()

    def post(self, request, *args, **kwargs):
        if request.POST.get("grant_type") == DEVICE_GRANT and "device_code" not in request.POST:
            # The toolkit fails.
            return JsonResponse({"error": "invalid_request"}, status=400)
        return super().post(request, *args, **kwargs)

    def device_flow_token_response(self, request, device_code):
        grant = get_device_grant_model().objects.filter(device_code=device_code).first()
        if grant and not grant.is_expired() and grant.status == grant.AUTHORIZATION_PENDING:
            if self.pace.is_too_fast(device_code, oauth2_settings.DEVICE_FLOW_INTERVAL):
                return JsonResponse({"error": "slow_down"}, status=400)
        response = super().device_flow_token_response(request, device_code)
        if response.status_code == 200:
            grant.delete()
        return response
