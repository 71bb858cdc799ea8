"""The target in HTTP/3: the same paths at the same port, over UDP; where `aioquic` is installed.

Requests are answered by the streams of HTTP/2 (`target.http2`), on a session of QUIC. Sessions are
resumed, and early data is taken (0-RTT).
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent
from aioquic.tls import SessionTicket

from hyperscale.http3.session import Blocks, Session
from hyperscale.target.http2 import ServerStream
from hyperscale.target.site import TABLES_LIST_BYTES, Site

_TICKETS_MAX = 10_000
_WINDOW = 4 * 1024 * 1024
_BURST_BYTES = 8 * 1024 * 1024
_FORCED = 33  # SO_RCVBUFFORCE of Linux, which Python does not name


class HTTP3Connection(QuicConnectionProtocol):
    """`transport` is what the effects of a reply know; raw bytes have no place in QUIC."""

    def __init__(self, site: Site, blocks: Blocks, quic: QuicConnection) -> None:
        super().__init__(quic)
        self.site = site
        self.transport = self
        self._blocks = blocks
        self._is_over = False

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.session = Session(self._quic, self._blocks, lambda: ServerStream(cast(Any, self)))
            self.site.connections.add(cast(Any, self))
        elif isinstance(event, ConnectionTerminated):
            self._is_over = True
            self.site.connections.discard(cast(Any, self))
        else:
            self.session.handle(event, 0.0)

    def transmit(self) -> None:
        super().transmit()
        if hasattr(self, "session"):
            self.session.room(0.0)

    def flush(self) -> None:
        self._transmit_soon()

    def is_closing(self) -> bool:
        return self._is_over

    def write(self, data: bytes) -> None:
        """Not on a stream: nothing that QUIC would carry."""

    def get_extra_info(self, name: str) -> None:
        """There is no socket of its own."""

    def abort(self) -> None:
        self._is_over = True
        self.close()


async def listen(site: Site, host: str, port: int, cert: Path, key: Path) -> QuicServer:
    """Raises OSError."""
    configuration = QuicConfiguration(
        alpn_protocols=["h3"], is_client=False, max_stream_data=_WINDOW, max_data=4 * _WINDOW
    )
    configuration.load_cert_chain(cert, key)
    blocks = Blocks(TABLES_LIST_BYTES)
    tickets: dict[bytes, SessionTicket] = {}

    def keep(ticket: SessionTicket) -> None:
        if len(tickets) >= _TICKETS_MAX:
            tickets.clear()
        tickets[ticket.ticket] = ticket

    def protocol(quic: QuicConnection, stream_handler: object = None) -> HTTP3Connection:
        return HTTP3Connection(site, blocks, quic)

    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: QuicServer(
            configuration=configuration,
            create_protocol=protocol,
            session_ticket_fetcher=tickets.get,
            session_ticket_handler=keep,
        ),
        local_addr=(host, port),
    )
    _room_for_bursts(transport.get_extra_info("socket"))
    return server


def _room_for_bursts(sock: socket.socket) -> None:
    """All users come at once, and what is dropped is sent again only after hundreds of
    milliseconds. Root may have more than the system allows others."""
    for option in (socket.SO_RCVBUF, _FORCED):
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, _BURST_BYTES)
