"""A cluster's own certificates: who a node is, signed by the cluster's authority.

A node certificate carries role, cluster, environment and datacenter as URIs (A-55), so that a
stolen worker key opens nothing a worker may not open, and the id of its node, so that it opens
nothing under another name. TLS is 1.3 and mutual, always; there is no other kind of context here.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from hyperscale.wire.errors import Reason, Refused
from hyperscale.wire.identity import ROLES, is_name

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

SCHEME = "hyperscale"
AUTHORITY_DAYS = 3650
# Whoever copies a key can use it for this long, unless somebody notices.
NODE_DAYS = 90
# They are told with every question that a manager passes on.
GROUPS_MAX = 8
GROUP_CHARS_MAX = 64
AUTHORITY_NAME = "Hyperscale cluster "
# Machines of one cluster disagree about the time; a certificate made now is good everywhere now.
CLOCK_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CertificateIdentity:
    """Without a node id it is good for any node of its role: `make_node` never makes such a one,
    another authority may, for nodes that come and go."""

    role: str
    cluster_id: str
    environment_id: str
    datacenter: str
    node_id: str = ""
    groups: tuple[str, ...] = ()

    def uris(self) -> list[str]:
        said = [
            f"{SCHEME}://role/{self.role}",
            f"{SCHEME}://cluster/{self.cluster_id}",
            f"{SCHEME}://env/{self.environment_id}",
            f"{SCHEME}://dc/{self.datacenter}",
            *(f"{SCHEME}://group/{group}" for group in self.groups),
        ]
        return [*said, f"{SCHEME}://node/{quote(self.node_id, safe='')}"] if self.node_id else said


@dataclass(frozen=True, slots=True)
class Pem:
    """A certificate and its private key, as they stand in files."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files of one node. `verify_hostname` off: any node of the cluster will do, whatever its
    address; who it is still stands in its certificate (B-85)."""

    ca: Path
    certificate: Path
    key: Path
    verify_hostname: bool = True

    def server_context(self) -> ssl.SSLContext:
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # connections live long; nobody resumes
        return context

    def client_context(self) -> ssl.SSLContext:
        context = self._context(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_hostname
        return context

    def validity(self) -> Validity:
        """Of the certificate as it stands in its file. Raises OSError or ValueError."""
        return validity_of(ssl.PEM_cert_to_DER_cert(self.certificate.read_text(encoding="ascii")))

    def reload(self, context: ssl.SSLContext) -> None:
        """For the handshakes to come. What another context has read without an error."""
        context.load_verify_locations(self.ca)
        context.load_cert_chain(self.certificate, self.key)

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_verify_locations(self.ca)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_authority(cluster_id: str, days: int = AUTHORITY_DAYS) -> Pem:
    """A key that signs node certificates of one cluster and nothing else."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(AUTHORITY_NAME + cluster_id)
    builder = (
        _builder(name, name, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(_authority_identifier(key), critical=False)
    )
    return _pem(builder, key, key)


def authority_cluster(authority: Pem) -> str:
    """The cluster an authority signs for; raises ValueError when it is not one of ours."""
    from cryptography import x509

    subject = x509.load_pem_x509_certificate(authority.certificate).subject
    names = [str(part.value) for part in subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    if len(names) != 1 or not names[0].startswith(AUTHORITY_NAME):
        raise ValueError("the authority was not made by hyperscale certs")
    return names[0].removeprefix(AUTHORITY_NAME)


def make_node(
    authority: Pem,
    identity: CertificateIdentity,
    node_id: str,
    hosts: Sequence[str] = ("localhost", "127.0.0.1", "::1"),
    days: float = NODE_DAYS,
) -> Pem:
    """A certificate for one node, good as server and as client."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    signer: Any = serialization.load_pem_private_key(authority.key, password=None)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [_host(host) for host in dict.fromkeys(hosts)]
    uris = replace(identity, node_id=node_id).uris()
    names += [x509.UniformResourceIdentifier(uri) for uri in uris]
    purposes = [
        x509.oid.ExtendedKeyUsageOID.SERVER_AUTH,
        x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH,
    ]
    builder = (
        _builder(_name(node_id), issuer.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(_authority_identifier(signer), critical=False)
    )
    return _pem(builder, key, signer)


@dataclass(frozen=True, slots=True)
class Validity:
    """Unix times, and the number by which a certificate can be withdrawn."""

    serial: int
    begins_at: float
    ends_at: float


def validity_of(der: bytes) -> Validity:
    """Raises ValueError for bytes that are no certificate."""
    from cryptography import x509

    found = x509.load_der_x509_certificate(der)
    return Validity(
        found.serial_number,
        found.not_valid_before_utc.timestamp(),
        found.not_valid_after_utc.timestamp(),
    )


def hosts_of(der: bytes) -> list[str]:
    """The names and addresses a certificate is good for."""
    from cryptography import x509

    names = (
        x509.load_der_x509_certificate(der)
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    addresses = [str(one) for one in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def identity_of(der: bytes) -> CertificateIdentity:
    """What a certificate says of its holder; Refused when it does not say it all, and once."""
    from cryptography import x509

    try:
        names = (
            x509.load_der_x509_certificate(der)
            .extensions.get_extension_for_class(x509.SubjectAlternativeName)
            .value.get_values_for_type(x509.UniformResourceIdentifier)
        )
    except (ValueError, x509.ExtensionNotFound):
        names = []
    said: dict[str, list[str]] = {}
    for uri in names:
        scheme, _, rest = uri.partition("://")
        what, _, value = rest.partition("/")
        if scheme == SCHEME and value:
            said.setdefault(what, []).append(value)
    parts = [said.get(what, []) for what in ("role", "cluster", "env", "dc")]
    parts.append([unquote(name) for name in said.get("node", [""])])
    if any(len(part) != 1 for part in parts) or parts[0][0] not in ROLES:
        raise Refused(
            "",
            "the certificate does not name one role, cluster, environment and datacenter",
            code=Reason.WRONG_CERTIFICATE,
        )
    groups = tuple(said.get("group", ()))
    if len(groups) > GROUPS_MAX or not all(
        is_name(group) and len(group) <= GROUP_CHARS_MAX for group in groups
    ):
        raise Refused(
            "",
            f"the certificate names more than {GROUPS_MAX} groups, or one that is no name",
            code=Reason.WRONG_CERTIFICATE,
        )
    role, cluster, environment, datacenter, node_id = (part[0] for part in parts)
    return CertificateIdentity(role, cluster, environment, datacenter, node_id, groups)


def _name(common_name: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: float
) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(sign_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_identifier(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    from cryptography import x509

    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _pem(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> Pem:
    from cryptography.hazmat.primitives import hashes, serialization

    encoding = serialization.Encoding.PEM
    return Pem(
        certificate=builder.sign(signer, hashes.SHA256()).public_bytes(encoding),
        key=key.private_bytes(
            encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
