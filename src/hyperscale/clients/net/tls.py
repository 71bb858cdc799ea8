"""The TLS settings of a workflow as contexts, shared by all its connections.

One context for each client certificate that may be shown, since a context has one certificate.
"""

from __future__ import annotations

import ssl
import warnings
from pathlib import Path
from typing import NamedTuple

from hyperscale.clients.net.hosts import ascii_pattern, meets
from hyperscale.errors import BadInput
from hyperscale.workload.http_options import ClientCert, HTTPOptions

_VERSIONS = {
    "1.0": ssl.TLSVersion.TLSv1,
    "1.1": ssl.TLSVersion.TLSv1_1,
    "1.2": ssl.TLSVersion.TLSv1_2,
    "1.3": ssl.TLSVersion.TLSv1_3,
}
# OpenSSL has TLS 1.0 and 1.1 at its lowest level of security only.
_OLD = ("1.0", "1.1")
_LOWEST = "@SECLEVEL=0"


class Identity(NamedTuple):
    """A client certificate and the option that names it."""

    option: str
    cert: str
    key: str
    password: str | None


class TLSContexts:
    """`context(host)` for a target, `proxy_context(host)` for TLS to a proxy."""

    def __init__(self, options: HTTPOptions, protocols: tuple[str, ...]) -> None:
        self._options = options
        self._protocols = protocols
        self._made: dict[Identity | None, ssl.SSLContext] = {}
        self._sessions: dict[str, ssl.SSLSession] = {}  # by host and port
        self._default = _identity("http.cert", options) if options.cert else None
        self._certs = [(_domains(cert), _identity("ClientCert", cert)) for cert in options.certs]

    def check(self) -> None:
        """A file or cipher that cannot be used is reported now, not in the run."""
        options = self._options
        if options.ca or options.cert or options.ciphers or options.certs:
            self._context(self._default)
            for _, identity in self._certs:
                self._context(identity)

    def context(self, host: str) -> ssl.SSLContext:
        return self._context(self.identity(host))

    def identity(self, host: str) -> Identity | None:
        """The client certificate that a target is shown."""
        return self._identity_for(host) or self._default

    def proxy_context(self, host: str) -> ssl.SSLContext:
        """The certificate for all targets is not for the proxy; one that names it is."""
        return self._context(self._identity_for(host))

    def session(self, authority: str) -> ssl.SSLSession | None:
        """What to hand to the wrapping of the next connection to this host and port."""
        return self._sessions.get(authority)

    def keep_session(self, authority: str, session: ssl.SSLSession | None) -> None:
        """Of a connection that has had an answer: with TLS 1.3 the server sends it after the
        handshake."""
        if session is not None:
            self._sessions[authority] = session

    def _identity_for(self, host: str) -> Identity | None:
        return next((one for domains, one in self._certs if meets(host, domains)), None)

    def _context(self, identity: Identity | None) -> ssl.SSLContext:
        context = self._made.get(identity)
        if context is None:
            context = _trusting(self._options)
            _limit_versions(context, self._options)
            if identity is not None:
                _load(context, identity)
            if self._protocols:
                context.set_alpn_protocols(self._protocols)
            self._made[identity] = context
        return context


def _identity(option: str, source: HTTPOptions | ClientCert) -> Identity:
    cert = str(Path(source.cert or "").expanduser())
    key = str(Path(source.key).expanduser()) if source.key else cert
    return Identity(option, cert, key, source.key_password)


def _domains(cert: ClientCert) -> tuple[str, ...]:
    domains = (cert.domains,) if isinstance(cert.domains, str) else cert.domains
    return tuple(map(ascii_pattern, domains))


def _trusting(options: HTTPOptions) -> ssl.SSLContext:
    if not options.verify:
        # Without authorities: OpenSSL would look for the issuer all the same, and to read the
        # system's directory of certificates takes a quarter of a handshake.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    ca = Path(options.ca).expanduser() if options.ca else None
    try:
        return ssl.create_default_context(
            cafile=str(ca) if ca and not ca.is_dir() else None,
            capath=str(ca) if ca and ca.is_dir() else None,
        )
    except OSError as error:
        raise BadInput(
            f"http.ca {options.ca} cannot be used: {error.strerror or error}",
            "it must be a PEM file or a directory of them",
        ) from error


def _limit_versions(context: ssl.SSLContext, options: HTTPOptions) -> None:
    highest = options.tls_max or "1.3"
    lowest = options.tls_min or min("1.2", highest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the author asked for old versions
        context.minimum_version = _VERSIONS[lowest]
        context.maximum_version = _VERSIONS[highest]
    ciphers = options.ciphers or ("DEFAULT" if lowest in _OLD else "")
    if lowest in _OLD and "@SECLEVEL" not in ciphers:
        ciphers = f"{ciphers}:{_LOWEST}"
    if ciphers:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError:
            raise BadInput(
                f"http.ciphers {options.ciphers!r} is refused by OpenSSL: it names no cipher of "
                "TLS 1.2 or below",
                "'openssl ciphers -v' lists them; TLS 1.3 has its own, which are always allowed",
            ) from None


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    option, cert, key, password = identity
    for file in (cert, key):
        try:
            text = Path(file).read_bytes()
        except OSError as error:
            raise BadInput(f"{option} {file} cannot be read: {error.strerror}") from error
    try:
        # Without a password an empty one: a prompt would hang the run.
        context.load_cert_chain(cert, key, password=password or "")
    except (OSError, ValueError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            raise BadInput(f"{option} {cert} and the key in {key} do not belong together") from None
        if b"ENCRYPTED" in text and password is None:
            raise BadInput(
                f"the key of {option} in {key} is encrypted",
                'set key_password=secret("KEY_PASSWORD")',
            ) from None
        if b"ENCRYPTED" in text:
            raise BadInput(f"key_password does not open the key of {option} in {key}") from None
        raise BadInput(
            f"{option} {cert} cannot be used: {getattr(error, 'strerror', None) or error}",
            "it must be PEM, and its key in the same file or in a file of its own",
        ) from error
