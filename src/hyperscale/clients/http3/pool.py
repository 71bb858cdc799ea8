"""The connections of HTTP/3 of one process and workflow; shared as those of HTTP/2 are."""

from __future__ import annotations

import dataclasses
import socket
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.tls import SessionTicket

from hyperscale.clients.http.origin_pool import Made
from hyperscale.clients.http.request import Request
from hyperscale.clients.http.route import Route
from hyperscale.clients.http2.held import Held
from hyperscale.clients.http2.pool import StreamPool, TunnelRoute
from hyperscale.clients.http3.connection import Connection
from hyperscale.clients.http3.trust import Authorities
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.errors import BadInput
from hyperscale.http3.session import Blocks
from hyperscale.workload.http_options import MIB, HTTPOptions
from hyperscale.workload.results import Connect, Outcome

# What a server may send ahead of us, as with HTTP/2.
_STREAM_WINDOW, _CONNECTION_WINDOW = 4 * MIB, 16 * MIB


class QuicRoute(TunnelRoute):
    __slots__ = ()

    def __init__(self, target: Any, proxy: Any, *more: Any) -> None:
        if target.scheme != "https":
            raise BadInput(
                f"{target.scheme}://{target.host} cannot be asked in HTTP/3, which has TLS always",
                "write https://",
            )
        if proxy is not None:
            raise BadInput(
                f"HTTP/3 goes over UDP, which the proxy {proxy.name} does not pass on",
                'set proxy="" in HTTPOptions, or name the host in NO_PROXY',
            )
        super().__init__(target, proxy, *more)


class QuicPool(StreamPool):
    route_kind: ClassVar = QuicRoute

    def __init__(
        self,
        options: HTTPOptions,
        network: Network,
        limit: RequestLimit | None,
        kind: type[Request],
    ) -> None:
        if options.unix_socket:
            raise BadInput("HTTP/3 goes over UDP, not through http.unix_socket")
        super().__init__(options, network, limit, kind)
        self.authorities = Authorities(options, self.tls)
        self.blocks = Blocks(options.max_header_bytes)
        self.nowhere = Held(self.queue)  # of connections that are not open yet
        self._tickets: dict[str, SessionTicket] = {}

    async def _dial(self, route: Route, made: Made[Any]) -> Any:
        network = self.network
        began = perf_counter()
        try:
            addresses = await network.addresses(route, route.authority)
            resolved = perf_counter()
            connection = await network.race(route, addresses, partial(self._shake_hands, route))
        except ConnectionRefusedError as error:
            text = f"nobody listens at {route.authority} (UDP)"
            raise Failure(Outcome.REFUSED, text) from error
        except (OSError, Failure) as error:
            raise failures.of_connecting(error, route.authority) from error
        # Of QUIC, the handshake is that of TLS as well.
        return made(connection, Connect(resolved - began, perf_counter() - resolved, 0.0))

    def _made(self, held: Held, route: Route, sock: Any, connect: Connect) -> Any:
        sock.held_by(held, connect)
        return sock

    async def _shake_hands(self, route: Route, address: str) -> Connection:
        """Raises OSError when nobody is there, Failure when somebody else is."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            self.network.local_addresses.bind(sock)
            sock.connect((address, route.peer[1]))
            connection = Connection(self, route, sock, self._quic(route))
        except BaseException:
            sock.close()
            raise
        if connection.is_early:
            return connection
        try:
            await connection.ready
        except Failure as failure:
            if failure.outcome is Outcome.REFUSED:  # another address may do
                raise ConnectionRefusedError from failure
            raise
        except BaseException:
            connection.shut()
            raise
        return connection

    def _quic(self, route: Route) -> QuicConnection:
        options = self.options
        configuration = QuicConfiguration(
            alpn_protocols=["h3"],
            max_data=_CONNECTION_WINDOW,
            max_stream_data=_STREAM_WINDOW,
            server_name=route.server_name,
            verify_mode=0,  # by `trust`
        )
        shown = self.authorities.shown_to(route.host)
        if shown is not None:
            certificate, chain, key = shown
            configuration.certificate, configuration.private_key = certificate, key
            configuration.certificate_chain = chain
        if not (options.tls_resume or options.early_data):
            return QuicConnection(configuration=configuration)
        ticket = self._tickets.get(route.authority)
        if ticket is not None and not options.early_data:
            ticket = dataclasses.replace(ticket, max_early_data_size=None)
        configuration.session_ticket = ticket

        def keep(fresh: SessionTicket) -> None:
            self._tickets[route.authority] = fresh

        return QuicConnection(configuration=configuration, session_ticket_handler=keep)
