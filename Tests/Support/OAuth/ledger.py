"""What the provider's database has of tokens, and what an administrator would do to them there."""

import hashlib
from datetime import timedelta

from django.utils import timezone
from oauth2_provider.models import AccessToken, DeviceGrant, Grant, IDToken, RefreshToken


def past():
    return timezone.now() - timedelta(seconds=1)


def find(token):
    """An access or a refresh token."""
    checksum = {"token_checksum": hashlib.sha256(token.encode()).hexdigest()}
    found = AccessToken.objects.filter(**checksum).first() or RefreshToken.objects.filter(**checksum).last()
    if not found:
        raise LookupError("no such token")
    return found


def expire(token):
    found = find(token)
    if isinstance(found, AccessToken):
        found.expires = past()
        found.save()
    else:
        # A refresh token without an access token is refused like an expired one; the access token stays unchanged.
        RefreshToken.objects.filter(pk=found.pk).update(access_token=None)


def expire_device(user_code):
    if not DeviceGrant.objects.filter(user_code=user_code).update(expires=past()):
        raise LookupError("no such code")


def revoke(token):
    """The whole family, access tokens with it: what a person does who signs out everywhere."""
    found = find(token)
    refresh = RefreshToken.objects.filter(access_token=found).first() if isinstance(found, AccessToken) else found
    if refresh:
        RefreshToken.revoke_family(refresh.token_family)
    else:
        found.revoke()


def sessions(user=None):
    access = AccessToken.objects.filter(expires__gt=timezone.now())
    refresh = RefreshToken.objects.all()
    if user:
        access, refresh = access.filter(user__username=user), refresh.filter(user__username=user)
    live = refresh.filter(revoked__isnull=True, access_token__isnull=False)
    return {
        "access_tokens": access.count(),
        "refresh_tokens": live.count(),
        "families": live.values("token_family").distinct().count(),
        "families_ever": refresh.values("token_family").distinct().count(),
    }


def state(token):
    """`live`, `ended` (known and no longer good) or `unknown`."""
    try:
        found = find(token)
    except LookupError:
        return "unknown"
    if isinstance(found, AccessToken):
        return "live" if found.is_valid() else "ended"
    return "live" if found.revoked is None and found.access_token_id else "ended"


def clear():
    for model in (RefreshToken, AccessToken, IDToken, Grant, DeviceGrant):
        model.objects.all().delete()
