"""A resource that wants an access token, and a redirection that may lead elsewhere."""

import hashlib

from django.http import HttpResponse, JsonResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.views.mixins import ProtectedResourceMixin
from oauth2_provider.www_authenticate import build_bearer_challenge, challenge_status


@method_decorator(csrf_exempt, name="dispatch")
class Echo(ProtectedResourceMixin, View):
    def unauthenticated_response(self, request, verified):
        # RFC 6750, section 3: no error code for a request without a token.
        error = getattr(verified, "oauth2_error", None) if request.headers.get("Authorization") else None
        response = JsonResponse({"error": "unauthorized"}, status=challenge_status(error))
        response["WWW-Authenticate"] = build_bearer_challenge(request, error, "api", resource_metadata_url=None)
        return response

    def answer(self, request):
        return JsonResponse(
            {
                "method": request.method,
                "length": len(request.body),
                "sha256": hashlib.sha256(request.body).hexdigest(),
                "user": request.resource_owner and request.resource_owner.get_username(),
            }
        )

    get = post = put = patch = delete = answer


@csrf_exempt
def redirect(request):
    return HttpResponse(status=int(request.GET.get("status", 302)), headers={"Location": request.GET["to"]})
