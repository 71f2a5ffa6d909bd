"""The cryptography that Format.md names, from libsodium and hashlib."""

import hashlib
import struct
import unicodedata

from nacl import bindings
from nacl.exceptions import CryptoError

NONCE = bindings.crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
OVERHEAD = NONCE + bindings.crypto_aead_xchacha20poly1305_ietf_ABYTES


def digest(data, size=32):
    """D(data)."""
    return hashlib.blake2b(data, digest_size=size).digest()


def keyed(key, data, size=32):
    """H(key; data)."""
    return hashlib.blake2b(data, key=key, digest_size=size).digest()


def with_lengths(*parts):
    """Each part preceded by its length as `u64`."""
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def derive(key, label, *parts):
    return keyed(key, with_lengths(label.encode("ascii"), *parts))


def associated(label, *fields):
    """The associated data that the text writes as "*label*, …"."""
    return label.encode("ascii") + b"\0" + b"".join(fields)


def unseal(key, sealed, data):
    """The plaintext, or None when it does not authenticate."""
    if len(sealed) < OVERHEAD:
        return None
    try:
        return bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[NONCE:], data, sealed[:NONCE], key)
    except CryptoError:
        return None


def argon2id(passphrase, salt, passes, memory):
    return bindings.crypto_pwhash_alg(32, passphrase, salt, passes, memory, bindings.crypto_pwhash_ALG_ARGON2ID13)


def spellings(passphrase):
    """What to hash of a passphrase, in order: as RFC 8265's OpaqueString writes it, and as it is."""
    try:
        text = passphrase.decode()
    except UnicodeDecodeError:
        return [passphrase]
    spaced = "".join(" " if unicodedata.category(each) == "Zs" else each for each in text)
    written = unicodedata.normalize("NFC", spaced).encode()
    return [written] if written == passphrase else [written, passphrase]


def padded(length):
    """Padmé, rounded up to a multiple of 8."""
    if length >= 2:
        exponent = length.bit_length() - 1
        mask = (1 << exponent - exponent.bit_length()) - 1
        length = length + mask & ~mask
    return length + 7 & ~7
