"""The listening side: accept, shake hands, serve until the connection ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hyperscale.runtime.host import Address, Listener, Stream
from hyperscale.wire import handshake
from hyperscale.wire.connection import Connection
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Malformed, Refused
from hyperscale.wire.frames import FrameDecoder

GIVE_WAY_S = 1.0


class Server:
    """`on_connected` hears of every peer that passed the handshake, before its first request."""

    def __init__(
        self, endpoint: Endpoint, on_connected: Callable[[Connection], None] | None = None
    ) -> None:
        self._endpoint = endpoint
        self._on_connected = on_connected
        self._listener: Listener | None = None
        self._connections: dict[Connection, None] = {}
        self._greeting: dict[Stream, float] = {}
        self.turned_away: Counter[str] = Counter()

    @property
    def address(self) -> Address:
        if self._listener is None:
            raise RuntimeError("the server is not listening")
        return self._listener.address

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections)

    async def start(self, address: Address) -> Address:
        """Listen, and return where; port 0 picks a free one."""
        tls = self._endpoint.server_tls(address)
        self._listener = await self._endpoint.host.network.listen(address, self._serve, tls)
        return self._listener.address

    def close(self) -> None:
        """Accept no more and end every connection."""
        if self._listener is not None:
            self._listener.close()
        for connection in self.connections:
            connection.close("this node is shutting down")

    def _has_room(self) -> bool:
        """Who says nothing for long gives way to the next."""
        limits, greeting = self._endpoint.limits, self._greeting
        if len(self._connections) + len(greeting) >= limits.connections_max:
            return False
        if len(greeting) < limits.greetings_max:
            return True
        oldest, began_at = next(iter(greeting.items()))
        if self._endpoint.host.clock.now() < began_at + GIVE_WAY_S:
            return False
        del greeting[oldest]
        oldest.close()
        return True

    async def _serve(self, stream: Stream) -> None:
        endpoint = self._endpoint
        if not self._has_room():
            self.turned_away["full"] += 1
            return
        decoder = FrameDecoder(handshake.GREETING_BYTES_MAX)
        self._greeting[stream] = endpoint.host.clock.now()
        try:
            session = await handshake.answer(
                stream, decoder, endpoint.introduction, endpoint.limits.handshake_timeout_s
            )
        except Refused as refusal:
            self.turned_away[refusal.code] += 1
            return
        except (Malformed, Disconnected, DeadlineExceeded) as error:
            self.turned_away[type(error).__name__.lower()] += 1
            return
        finally:
            self._greeting.pop(stream, None)
        connection = Connection(endpoint, stream, session, decoder)
        self._connections[connection] = None
        try:
            if self._on_connected is not None:
                self._on_connected(connection)
            await connection.run()
        finally:
            connection.close()
            del self._connections[connection]
