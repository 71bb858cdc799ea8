"""A certificate authority for tests, and certificates of it."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


class Authority:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._build("Test CA", self._key, self._key, "Test CA", ca=True)
        self.ca = str(folder / "ca.pem")
        Path(self.ca).write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def _build(
        self,
        common: str,
        key: ec.EllipticCurvePrivateKey,
        signer: ec.EllipticCurvePrivateKey,
        issuer: str,
        *,
        ca: bool = False,
        days: int = 1,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName(common), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        if "other" in common:
            names.pop()
        return (
            x509.CertificateBuilder()
            .subject_name(_name(common))
            .issuer_name(_name(issuer))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=3))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
            .sign(signer, hashes.SHA256())
        )

    def issue(self, name: str, *, self_signed: bool = False, days: int = 1) -> str:
        """A PEM file with a certificate for the name (and 127.0.0.1) and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        signer, issuer = (key, name) if self_signed else (self._key, "Test CA")
        certificate = self._build(name, key, signer, issuer, days=days)
        path = self._folder / f"{name}-{self_signed}-{days}.pem"
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return str(path)

    def server(self, pem: str, *, asks: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pem)
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context


def encrypted(pem: str, password: str) -> tuple[str, str]:
    """The certificate of a PEM file and its key, in files of their own, the key encrypted."""
    data = Path(pem).read_bytes()
    at = data.index(b"-----BEGIN PRIVATE KEY")
    key = serialization.load_pem_private_key(data[at:], None)
    cert, locked = Path(f"{pem}.cert"), Path(f"{pem}.key")
    cert.write_bytes(data[:at])
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode()),
        )
    )
    return str(cert), str(locked)
