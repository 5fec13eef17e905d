"""Certificates for servers on loopback: of an authority that tests can trust, in every state that a certificate can be in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
FOREVER = datetime(2120, 1, 1, tzinfo=UTC)


class Authority:
    """`certificates` is the file with its own certificate, for SSL_CERT_FILE."""

    def __init__(self, folder: Path, name: str = "authority of the tests") -> None:
        self._folder = folder
        self._number = 0
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        own = (
            x509.CertificateBuilder(
                self._name,
                self._name,
                self._key.public_key(),
                1,
                datetime(2020, 1, 1, tzinfo=UTC),
                FOREVER,
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificates = folder / "authority.pem"
        self.certificates.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, *names: str, since: datetime | None = None, until: datetime | None = None
    ) -> Path:
        """Return the file of a new certificate and its key. `names`: hosts and addresses."""
        self._number += 1
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        alternatives = [_alternative(name) for name in names]
        certificate = (
            x509.CertificateBuilder(
                self._name,
                _named(names[0]),
                key.public_key(),
                self._number + 1,
                since or now - DAY,
                until or FOREVER,
            )
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = self._folder / f"{self._number}.pem"
        unencrypted = serialization.NoEncryption()
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return path

    def expired(self, *names: str) -> Path:
        now = datetime.now(UTC)
        return self.issue(*names, since=now - 9 * DAY, until=now - DAY)

    def of_tomorrow(self, *names: str) -> Path:
        return self.issue(*names, since=datetime.now(UTC) + DAY)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
