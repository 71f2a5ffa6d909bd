"""The paths of the provider and of the resource it protects."""

import json

from django.contrib.auth.views import LoginView
from django.http import JsonResponse
from django.urls import include, path, re_path
from oauth2_provider import views
from oauth2_provider.settings import oauth2_settings

import grants
import resource_server


def complete(view):
    """A metadata document with the endpoints that the toolkit has and does not list."""

    def answer(request, *args, **kwargs):
        issuer = oauth2_settings.OIDC_ISS_ENDPOINT
        facts = json.loads(view(request, *args, **kwargs).content)
        return JsonResponse(
            facts
            | {
                "device_authorization_endpoint": f"{issuer}/device-authorization/",
                "revocation_endpoint": f"{issuer}/revoke_token/",
                "introspection_endpoint": f"{issuer}/introspect/",
                "grant_types_supported": oauth2_settings.OAUTH2_GRANT_TYPES_SUPPORTED,
            }
        )

    return answer


server_metadata = complete(views.OAuthServerMetadataView.as_view())

urlpatterns = [
    # RFC 8414 puts the well-known part before the issuer's path, OpenID Connect behind it.
    path(".well-known/oauth-authorization-server/o", server_metadata),
    re_path(r"^o/\.well-known/openid-configuration/?$", complete(views.ConnectDiscoveryInfoView.as_view())),
    path("o/token/", grants.TokenView.as_view()),
    path("o/device-authorization/", grants.DeviceAuthorizationView.as_view()),
    path("o/", include("oauth2_provider.urls")),
    path("login/", LoginView.as_view()),
    path("api/echo", resource_server.Echo.as_view()),
    path("api/redirect", resource_server.redirect),
]
