"""One node's end of every connection: who it is, what it knows, what it answers, its limits."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from weakref import WeakSet

import msgspec

from hyperscale.runtime.host import Address, Host
from hyperscale.runtime.tasks import Report, log_failure
from hyperscale.wire.arriving import Arriving
from hyperscale.wire.certificates import Credentials
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.messages import Kind, Registry
from hyperscale.wire.serving import IN_FLIGHT_MAX, Admission, Handler, shaped
from hyperscale.wire.withdrawn import Withdrawn

if TYPE_CHECKING:
    from hyperscale.wire.connection import Connection

Plaintext = Literal["refused", "loopback", "anywhere"]
"""Where unencrypted streams are allowed; "anywhere" is for the simulator, which nobody taps."""


@dataclass(frozen=True, slots=True)
class Limits:
    """All in seconds or counts; every one a setting."""

    connect_timeout_s: float = 5.0
    # How long we wait for the answer to our greeting, and for the greeting of who calls us: a
    # stranger costs a place as long as it says nothing.
    handshake_timeout_s: float = 5.0
    greeting_timeout_s: float = 3.0
    request_timeout_s: float = 5.0
    # Silence after which the other side is asked whether it is there, and how long it may take:
    # together well below the 30 s after which a silent member is certainly dead.
    keepalive_s: float = 10.0
    keepalive_timeout_s: float = 5.0
    in_flight_max: int = IN_FLIGHT_MAX
    # A cluster of 1,000 connecting twice over while old connections are still dying.
    connections_max: int = 4096
    # Of those the ones that have not said yet who they are, which takes milliseconds.
    greetings_max: int = 256
    greetings_of_source_max: int = 128
    # One node needs one or two; the commands of one client, or its runs side by side, need more.
    connections_of_node_max: int = 128


class Endpoint:
    def __init__(
        self,
        host: Host,
        introduction: Introduction,
        registry: Registry,
        handlers: Mapping[type[msgspec.Struct], Handler] | None = None,
        *,
        credentials: Credentials | None = None,
        plaintext: Plaintext = "refused",
        limits: Limits | None = None,
        admission: Admission | None = None,
        may_send: Mapping[str, frozenset[str]] | None = None,
        report: Report = log_failure,
    ) -> None:
        """`may_send` names the roles that may send each kind; without it, whoever may connect may
        send everything."""
        self.host = host
        self.introduction = introduction
        self.registry = registry
        self.handlers = shaped(handlers or {})
        self.limits = limits or Limits()
        self.admission = admission
        self.may_send = may_send
        self.report = report
        self.arriving = Arriving()
        self.withdrawn = Withdrawn()
        self.live: WeakSet[Connection] = WeakSet()
        self._credentials = credentials
        self._plaintext = plaintext
        self._server_tls: ssl.SSLContext | None = None
        self._client_tls: ssl.SSLContext | None = None
        unknown = registry.missing(self.handlers)
        if unknown:
            raise ValueError(f"handlers for messages nobody registered: {', '.join(unknown)}")

    def withdraw(self, withdrawn: Withdrawn) -> list[Connection]:
        """Whom we neither let in nor call from now on; the connections that are closed for it."""
        self.withdrawn = withdrawn
        closed = [
            one for one in self.live
            if not one.closed and withdrawn.covers(one.peer.node_id, one.session.serial)
        ]  # fmt: skip
        for one in closed:
            one.close(f"the certificate of {one.peer.node_id} was withdrawn")
        return closed

    def reload_credentials(self) -> None:
        """Read our certificate, key and authority again; connections that are there go on. Raises
        OSError (of which TLS errors are), and then everything is as before."""
        credentials = self._credentials
        if credentials is None:
            return
        fresh = credentials.client_context()
        if self._server_tls is not None:
            credentials.reload(self._server_tls)
        self._client_tls = fresh

    def server_tls(self, address: Address) -> ssl.SSLContext | None:
        if self._credentials is None:
            self._check_plaintext(address)
            return None
        if self._server_tls is None:
            self._server_tls = self._credentials.server_context()
        return self._server_tls

    def client_tls(self, address: Address) -> ssl.SSLContext | None:
        if self._credentials is None:
            self._check_plaintext(address)
            return None
        if self._client_tls is None:
            self._client_tls = self._credentials.client_context()
        return self._client_tls

    def kinds_from(self, role: str) -> frozenset[Kind] | None:
        """What a peer of this role may send; None: everything."""
        if self.may_send is None:
            return None
        nobody: frozenset[str] = frozenset()
        return frozenset(
            kind for kind in self.registry if role in self.may_send.get(kind.name, nobody)
        )

    def _check_plaintext(self, address: Address) -> None:
        if self._plaintext == "anywhere":
            return
        if self._plaintext == "loopback" and _is_loopback(address.host):
            return
        raise ValueError(
            f"{address} needs TLS: give credentials, or allow plaintext on loopback explicitly"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
