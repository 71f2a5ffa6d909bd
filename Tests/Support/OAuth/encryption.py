"""The same provider with TLS, by a certificate that nobody has reason to trust."""

import ipaddress
import ssl
import threading
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from front import listen


def certificate(name, path, is_rsa):
    """Signed by its own key, for a name or an address; both are written to `path`. The certificate as PEM."""
    key = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    try:
        subject = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    distinguished = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test's own")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder(distinguished, distinguished, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    ).public_bytes(Encoding.PEM)
    with open(path, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + made)
    return made.decode()


def serve(front, name, path, version=None, ciphers=None):
    """The port, and the certificate as PEM. With a version of TLS and a list of ciphers, it speaks no other."""
    server = listen(front)
    pem = certificate(name, path, is_rsa=ciphers is not None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if ciphers is not None:
        # OpenSSL disables old versions and ciphers by default.
        context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.load_cert_chain(path)
    # Each connection's own thread does the handshake.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port, pem
