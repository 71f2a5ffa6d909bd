"""What a Python program does with `keyring`, timed by itself: reads `lookup KEY` or `store KEY`, a line each, and answers
with nanoseconds. `loop.py secret-service`, or `loop.py cryptfile PATH`. A peer of peers-benchmark."""

import sys
import time

if sys.argv[1] == "cryptfile":
    from keyrings.cryptfile.cryptfile import CryptFileKeyring

    backend = CryptFileKeyring()
    backend.file_path = sys.argv[2]
    backend.keyring_key = "not-a-real-password"
else:
    from keyring.backends.SecretService import Keyring

    backend = Keyring()

value = "a" * 1024
for line in sys.stdin:
    operation, key = line.split()
    start = time.monotonic_ns()
    if operation == "lookup":
        found = backend.get_password("python-benchmark", key)
    else:
        found = value
        backend.set_password("python-benchmark", key, value)
    taken = time.monotonic_ns() - start
    if found != value:
        sys.exit(f"{key} is another value")
    print(taken, flush=True)
