"""The TLS identity that the proxy shows to the browser in place of the server's."""

from __future__ import annotations

import base64
import hashlib
import ssl
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Identity:
    """A key, and a self-signed certificate for it.

    The browser trusts the key, so names do not matter."""

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    @property
    def fingerprint(self) -> str:
        """The SHA-256 digest of the key (RFC 7469 section-2.4)."""
        der = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        return base64.b64encode(
            hashlib.sha256(self._key.public_key().public_bytes(*der)).digest()
        ).decode("ascii")

    @cached_property
    def context(self) -> ssl.SSLContext:
        """A server's TLS context with this identity."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "comity")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=365))
            .sign(self._key, hashes.SHA256())
        )
        form = (
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:  # `ssl` can only read files
            file = Path(folder) / "identity.pem"
            file.write_bytes(
                self._key.private_bytes(*form)
                + certificate.public_bytes(serialization.Encoding.PEM)
            )
            context.load_cert_chain(file)
        return context
