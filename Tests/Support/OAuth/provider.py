"""The Django project: django-oauth-toolkit as a provider of today sets it up, with what tests sign in as."""

import logging
import secrets

import django
from django.conf import settings
from django.core.management import call_command

REDIRECTS = ["http://127.0.0.1/callback", "http://[::1]/callback"]
USERS = {"alice": "fake-password-of-alice", "bob": "fake-password-of-bob"}
SERVICE_SECRET = "fake-secret-of-the-service"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
AUTHENTICATION_METHODS = ["none", "client_secret_post", "client_secret_basic"]

# The settings that a test may change, and that `reset` restores.
KNOBS = {
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "ID_TOKEN_EXPIRE_SECONDS": 3600,
    "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
    "DEVICE_FLOW_INTERVAL": 1,
}

LOGIN_PAGE = """<!DOCTYPE html><html><head><title>Sign in</title></head><body>
<form method="post">{% csrf_token %}{{ form.as_p }}
<input type="hidden" name="next" value="{{ next }}"><button type="submit">Sign in</button></form></body></html>"""


def token_lifetime(request):
    """Asked for each token, where the toolkit keeps the number it starts with."""
    from oauth2_provider.settings import oauth2_settings

    return oauth2_settings.ACCESS_TOKEN_EXPIRE_SECONDS


def toolkit(origin, pem):
    return KNOBS | {
        "OIDC_ENABLED": True,
        "OIDC_ISS_ENDPOINT": f"{origin}/o",
        "OIDC_RSA_PRIVATE_KEY": pem,
        "OIDC_RESPONSE_TYPES_SUPPORTED": ["code"],
        "OIDC_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": AUTHENTICATION_METHODS,
        "OAUTH2_RESPONSE_TYPES_SUPPORTED": ["code"],
        "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": AUTHENTICATION_METHODS,
        "OAUTH2_GRANT_TYPES_SUPPORTED": ["authorization_code", "client_credentials", "refresh_token", DEVICE_GRANT],
        "OAUTH2_VALIDATOR_CLASS": "grants.Validator",
        "EXTRA_SERVER_KWARGS": {"token_expires_in": token_lifetime},
        "OAUTH_DEVICE_VERIFICATION_URI": f"{origin}/o/device/",
        "OAUTH_DEVICE_VERIFICATION_URI_COMPLETE": f"{origin}/o/device/?user_code={{user_code}}",
        "SCOPES": {
            "offline_access": "renew the token",
            "openid": "know who you are",
            "profile": "read your name",
            "email": "read your address",
            "read": "read what you have",
            "write": "change what you have",
        },
        "DEFAULT_SCOPES": ["read"],
        "PKCE_REQUIRED": True,
        "ROTATE_REFRESH_TOKEN": True,
        "REFRESH_TOKEN_REUSE_PROTECTION": True,
        # RFC 9700: no `plain` challenge, no implicit and no password grant, and `iss` in the answer of the browser.
        "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
        "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
        "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
        "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
        "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    }


def set_up(directory, origin, pem):
    # Nothing below a warning: oauthlib's debug messages contain tokens.
    logging.basicConfig(filename=f"{directory}/log", level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    logging.captureWarnings(True)
    settings.configure(
        SECRET_KEY=secrets.token_urlsafe(32),
        ALLOWED_HOSTS=["127.0.0.1", "localhost"],
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        LOGGING_CONFIG=None,
        ROOT_URLCONF="urls",
        LOGIN_URL="/login/",
        USE_TZ=True,
        # Hashing a fake password need not take time.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        # Tables are made from the models, without their migrations.
        MIGRATION_MODULES={"auth": None, "contenttypes": None, "oauth2_provider": None},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": ["django.template.context_processors.request"],
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN_PAGE}),
                        "django.template.loaders.app_directories.Loader",
                    ],
                },
            }
        ],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": f"{directory}/database",
                "CONN_MAX_AGE": None,
                # Writers wait for one another from the start, rather than failing when they begin to write.
                "OPTIONS": {
                    "timeout": 300,
                    "transaction_mode": "IMMEDIATE",
                    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
                },
            }
        },
        OAUTH2_PROVIDER=toolkit(origin, pem),
    )
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    return fill()


def fill():
    """Users and clients; what a test has to know of them."""
    from django.contrib.auth.models import User
    from oauth2_provider.models import Application

    users = [
        User.objects.create_user(name, f"{name}@example.com", password, first_name=name.capitalize())
        for name, password in USERS.items()
    ]
    clients = {
        "browser": (Application.CLIENT_PUBLIC, Application.GRANT_AUTHORIZATION_CODE, ""),
        "device": (Application.CLIENT_PUBLIC, Application.GRANT_DEVICE_CODE, ""),
        "service": (Application.CLIENT_CONFIDENTIAL, Application.GRANT_CLIENT_CREDENTIALS, SERVICE_SECRET),
    }
    for name, (kind, grant, secret) in clients.items():
        Application.objects.create(
            client_id=f"fake-{name}-client",
            name=f"Fake {name}",
            client_type=kind,
            authorization_grant_type=grant,
            client_secret=secret,
            algorithm=Application.RS256_ALGORITHM,
            redirect_uris=" ".join(REDIRECTS) if name == "browser" else "",
        )
    return {
        "users": [
            {"name": user.username, "password": USERS[user.username], "subject": str(user.pk)} for user in users
        ],
        "clients": {
            name: {"id": f"fake-{name}-client", **({"secret": secret} if secret else {})}
            for name, (_, _, secret) in clients.items()
        },
        "redirects": REDIRECTS,
    }
