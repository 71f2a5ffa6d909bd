"""The keys that ID tokens are signed with: made at each start, kept nowhere."""

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def make_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def rotate(settings, keep):
    """Signs with a new key from now on. The old ones stay published, or do not. The names of the published keys."""
    from oauth2_provider.utils import jwk_from_pem

    old = [settings.OIDC_RSA_PRIVATE_KEY, *settings.OIDC_RSA_PRIVATE_KEYS_INACTIVE] if keep else []
    settings.OIDC_RSA_PRIVATE_KEY = make_key()
    settings.OIDC_RSA_PRIVATE_KEYS_INACTIVE = old
    return [jwk_from_pem(pem).thumbprint() for pem in [settings.OIDC_RSA_PRIVATE_KEY, *old]]
