"""What stands in for random bytes: the same for the same name."""

import hashlib

from nacl import bindings


class Source:
    """BLAKE2b of a counter, keyed with a name. Good for test vectors and for nothing else."""

    def __init__(self, name):
        self.key = hashlib.blake2b(name.encode(), digest_size=32, person=b"test vectors").digest()
        self.count = 0

    def bytes(self, length):
        taken = b""
        while len(taken) < length:
            taken += hashlib.blake2b(self.count.to_bytes(8, "little"), key=self.key).digest()
            self.count += 1
        return taken[:length]

    def seal(self, key, plain, data):
        """nonce ‖ ciphertext ‖ tag."""
        nonce = self.bytes(24)
        return nonce + bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, data, nonce, key)
