"""Whom a connection of QUIC believes to be the target, by the TLS options of HTTP.

`aioquic` proves that the server holds the key of its certificate; whether to trust it is decided
here, by OpenSSL and with the authorities that HTTP trusts, read once and not for every connection.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import service_identity.cryptography
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import crypto

from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.tls import Identity, TLSContexts
from hyperscale.errors import BadInput
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.results import Outcome


class Authorities:
    """Of a workflow: what is read of files is read before the clock starts."""

    def __init__(self, options: HTTPOptions, contexts: TLSContexts) -> None:
        if options.tls_max not in (None, "1.3"):
            raise BadInput(
                f"http.tls_max is {options.tls_max}, but QUIC has TLS 1.3 only", "leave it out"
            )
        self._contexts = contexts
        self._store = _store(options) if options.verify else None
        self._shown: dict[Identity, tuple[Any, list[Any], Any]] = {}

    def trust(self, authority: str, host: str, server_name: str) -> Trust:
        return Trust(self._store, authority, host, server_name)

    def shown_to(self, host: str) -> tuple[Any, list[Any], Any] | None:
        """The client certificate for a host, those behind it, and its key."""
        identity = self._contexts.identity(host)
        if identity is None:
            return None
        found = self._shown.get(identity)
        if found is None:
            certs = x509.load_pem_x509_certificates(Path(identity.cert).read_bytes())
            password = identity.password.encode() if identity.password else None
            key = load_pem_private_key(Path(identity.key).read_bytes(), password)
            found = self._shown[identity] = certs[0], certs[1:], key
        return found


class Trust:
    """Of one connection."""

    __slots__ = ("_host", "_name", "_store", "authority")

    def __init__(self, store: Any, authority: str, host: str, server_name: str) -> None:
        self._store = store
        self._host = host
        self._name = server_name
        self.authority = authority

    def check(self, certificate: x509.Certificate | None, chain: Sequence[Any]) -> None:
        """Raises Failure. Without a certificate an earlier session goes on, which was checked."""
        if self._store is None or certificate is None:
            return
        try:
            crypto.X509StoreContext(
                self._store,
                crypto.X509.from_cryptography(certificate),
                [crypto.X509.from_cryptography(one) for one in chain],
            ).verify_certificate()
        except crypto.X509StoreContextError as error:
            code, _, message = error.errors
            raise failures.of_certificate(int(code), str(message), self._host) from error
        by = service_identity.cryptography
        try:
            if _is_address(self._name):
                by.verify_certificate_ip_address(certificate, self._name)
            else:
                by.verify_certificate_hostname(certificate, self._name)
        except (service_identity.VerificationError, service_identity.CertificateError) as error:
            text = f"it does not name {self._name}"
            raise failures.of_certificate(failures.WRONG_NAME, text, self._host) from error
        except ValueError as error:
            text = f"certificate of {self._host} cannot be read: {error}"
            raise Failure(Outcome.TLS, text) from error


def _store(options: HTTPOptions) -> Any:
    store = crypto.X509Store()
    if options.ca:
        ca = Path(options.ca).expanduser()
        file, folder = (None, str(ca)) if ca.is_dir() else (str(ca), None)
    else:
        paths = ssl.get_default_verify_paths()
        file, folder = paths.cafile, paths.capath
    if file or folder:
        store.load_locations(file, folder)
    return store


def _is_address(name: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(name)
    except ValueError:
        return False
    return True
