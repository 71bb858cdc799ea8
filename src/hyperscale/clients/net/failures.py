"""Why there is no answer: errors of sockets and TLS as an outcome and a sentence for a person."""

from __future__ import annotations

import errno
import socket
import ssl

from hyperscale.workload.results import Outcome

# OpenSSL's X509_V_ERR_* codes that deserve a sentence of their own
_SELF_SIGNED = {18, 19}
_UNKNOWN_ISSUER = {2, 20, 21}
_EXPIRED = 10
WRONG_NAME = 62
_WRONG_NAME = {WRONG_NAME, 64}
_NOT_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
# How OpenSSL names what the other side (an alert) or this one had against the handshake
_NO_CERT = ("CERTIFICATE_REQUIRED", "ALERT_BAD_CERTIFICATE")
_BAD_CERT = ("UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED")
_NO_VERSION = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "VERSION_TOO_LOW")
_NO_AGREEMENT = ("HANDSHAKE_FAILURE",)  # of TLS 1.2: also for want of a client certificate
_TRUST_HINT = "pass a CA or --insecure-skip-tls-verify"


class Failure(Exception):
    """A call that got no answer; raised inside the client, never out of it."""

    def __init__(self, outcome: Outcome, error: str) -> None:
        super().__init__(error)
        self.outcome = outcome
        self.error = error


def cancelled() -> Failure:
    return Failure(Outcome.CANCELLED, "the run was stopped before the call ended")


def given_up() -> Failure:
    return Failure(Outcome.CANCELLED, "the call was given up before its answer came")


def timed_out(where: str, seconds: float) -> Failure:
    return Failure(Outcome.TIMEOUT, f"no answer from {where} within {seconds:.3g} s")


def late(where: str) -> Failure:
    return Failure(Outcome.TIMEOUT, f"the time for the call was over before {where} could be asked")


def of_connecting(error: BaseException, where: str) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, ssl.SSLError | ssl.CertificateError):
        return of_handshake(error, where)
    if isinstance(error, TimeoutError):
        return Failure(Outcome.TIMEOUT, f"connecting to {where} took too long")
    if isinstance(error, socket.gaierror):
        return of_lookup(error, where)
    if isinstance(error, ConnectionRefusedError):
        return Failure(Outcome.REFUSED, f"connection to {where} was refused")
    if isinstance(error, ConnectionError):
        return Failure(Outcome.RESET, f"{where} closed the connection while connecting")
    code = error.errno if isinstance(error, OSError) else None
    if code in (errno.EMFILE, errno.ENFILE):
        return Failure(Outcome.REFUSED, _out_of_files())
    if code == errno.EADDRNOTAVAIL:
        return Failure(
            Outcome.REFUSED,
            f"no local port is left to connect to {where}; keep connections alive or use fewer VUs",
        )
    if code in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return Failure(Outcome.REFUSED, f"{where} cannot be reached from this machine")
    return Failure(Outcome.REFUSED, f"connection to {where} failed: {_reason(error)}")


def of_lookup(error: OSError, host: str) -> Failure:
    return Failure(Outcome.DNS, f"{host} cannot be resolved: {error.strerror or error}")


def of_securing(error: Exception, where: str) -> Failure:
    """Between a connected socket and the first byte of the protocol."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, ConnectionError | ssl.SSLEOFError):
        return Failure(Outcome.TLS, f"{where} closed the connection during the TLS handshake")
    if isinstance(error, ssl.SSLError):
        return of_handshake(error, where)
    return of_connecting(error, where)


def of_handshake(error: BaseException, where: str) -> Failure:
    """TLS that was never there."""
    if isinstance(error, ssl.SSLCertVerificationError):
        host = where.rpartition(":")[0] or where
        return of_certificate(error.verify_code, error.verify_message, host)
    reason = getattr(error, "reason", None) or ""
    if reason in _NOT_TLS:
        return Failure(Outcome.TLS, f"{where} does not speak TLS; did you mean http://?")
    text = _of_alert(reason, where) or f"TLS with {where} failed: {_reason(error)}"
    return Failure(Outcome.TLS, text)


def of_tls(error: BaseException, where: str) -> Failure:
    """TLS that broke after this side had finished its handshake.

    With TLS 1.3 that is also when a server refuses the client's certificate.
    """
    reason = getattr(error, "reason", None) or ""
    refused = _of_alert(reason, where)
    if refused:
        return Failure(Outcome.TLS, refused)
    if reason in _NOT_TLS:
        text = f"{where} sent something in the middle of TLS that is not TLS"
        return Failure(Outcome.PROTOCOL, text)
    return Failure(Outcome.PROTOCOL, f"TLS with {where} broke: {_reason(error)}")


def of_certificate(code: int, message: str, host: str) -> Failure:
    """By the code that OpenSSL has for what is wrong with it."""
    if code in _SELF_SIGNED:
        text = f"certificate of {host} is self-signed; {_TRUST_HINT}"
    elif code in _UNKNOWN_ISSUER:
        text = f"certificate of {host} is signed by an unknown authority; {_TRUST_HINT}"
    elif code == _EXPIRED:
        text = f"certificate of {host} has expired"
    elif code in _WRONG_NAME:
        text = f"certificate of {host} is for another name: {message}"
    else:
        text = f"certificate of {host} is not accepted: {message}"
    return Failure(Outcome.TLS, text)


def _of_alert(reason: str, where: str) -> str:
    if reason.endswith(_NO_CERT):
        return f"{where} asks for a client certificate; set http.cert"
    if "ALERT" in reason and reason.endswith(_BAD_CERT):
        shown = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"{where} does not accept the client certificate: {shown}"
    if reason.endswith(_NO_VERSION):
        return f"{where} speaks no TLS version that is allowed here (http.tls_min, http.tls_max)"
    if reason.endswith(_NO_AGREEMENT):
        return (
            f"{where} refused the TLS handshake; it may ask for a client certificate (http.cert) "
            "or for other ciphers or versions (http.ciphers, http.tls_min)"
        )
    return ""


def _reason(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, str) and reason:
        return reason.replace("_", " ").lower()
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _out_of_files() -> str:
    try:
        import resource
    except ImportError:
        return "no more connections: the open-file limit of this machine is reached"
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (
        f"no more connections: the open-file limit is {limit}; raise it with 'ulimit -n 65536' "
        "or use fewer VUs"
    )
