"""Why a connection of QUIC ended, as an outcome and a sentence for a person."""

from __future__ import annotations

from aioquic.quic.events import ConnectionTerminated
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

from hyperscale.clients.net.failures import Failure
from hyperscale.http3.session import error_name
from hyperscale.workload.results import Outcome

_NO_ERROR = (0x0, 0x100)  # of QUIC, of HTTP/3
_CRYPTO = range(0x100, 0x200)  # TLS alerts, in an error of the transport
_WANTS_CERT = (AlertDescription.certificate_required, AlertDescription.bad_certificate)
_REFUSED_CERT = (
    AlertDescription.certificate_expired,
    AlertDescription.certificate_revoked,
    AlertDescription.certificate_unknown,
    AlertDescription.unknown_ca,
)


def failure_of(ending: ConnectionTerminated, where: str, by_peer: bool, ready: bool) -> Failure:
    code, of_transport = ending.error_code, ending.frame_type is not None
    reason = f": {ending.reason_phrase}" if ending.reason_phrase else ""
    if of_transport and code in _CRYPTO:
        return _of_alert(code - _CRYPTO.start, where, by_peer, reason)
    if of_transport and not by_peer and not ready and code == QuicErrorCode.INTERNAL_ERROR:
        # Versions that do not meet, and an end of patience, which comes after that of the call.
        return Failure(Outcome.PROTOCOL, f"{where} speaks no QUIC that is known here{reason}")
    if not by_peer and code == QuicErrorCode.INTERNAL_ERROR:
        return Failure(Outcome.RESET, f"{where} was silent and its connection was given up")
    if code in _NO_ERROR:
        return Failure(Outcome.RESET, f"{where} closed the connection{reason}")
    name = _transport_name(code) if of_transport else error_name(code)
    if by_peer:
        return Failure(Outcome.RESET, f"{where} ended the connection ({name}{reason})")
    return Failure(Outcome.PROTOCOL, f"{where} broke a rule of the protocol ({name}{reason})")


def _of_alert(number: int, where: str, by_peer: bool, reason: str) -> Failure:
    if number == AlertDescription.no_application_protocol:
        return Failure(Outcome.PROTOCOL, f"{where} speaks QUIC, but not HTTP/3")
    try:
        alert = AlertDescription(number)
        name = alert.name.replace("_", " ")
    except ValueError:
        return Failure(Outcome.TLS, f"{where} refused the TLS handshake (alert {number}{reason})")
    if by_peer and alert in _WANTS_CERT:
        return Failure(Outcome.TLS, f"{where} asks for a client certificate; set http.cert")
    if by_peer and alert in _REFUSED_CERT:
        return Failure(Outcome.TLS, f"{where} does not accept the client certificate: {name}")
    if by_peer:
        return Failure(Outcome.TLS, f"{where} refused the TLS handshake: {name}")
    return Failure(Outcome.TLS, f"TLS with {where} failed: {name}{reason}")


def _transport_name(code: int) -> str:
    try:
        return QuicErrorCode(code).name
    except ValueError:
        return f"code {code}"
