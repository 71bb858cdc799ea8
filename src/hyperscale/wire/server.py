"""The listening side: accept, shake hands, serve until the connection ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hyperscale.runtime.host import Address, Listener, Stream
from hyperscale.runtime.newcomers import Newcomers, source_of
from hyperscale.wire import handshake
from hyperscale.wire.connection import Connection
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Malformed, Reason, Refused
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.handshake import Session

# Who says nothing for so long gives way to the next: to anybody, and to one of its own source.
GIVE_WAY_S = 1.0
GIVE_WAY_TO_OWN_S = 0.25
# A node that has too many connections may have lost them all, and not know it yet.
ONE_NODE_RETRY_S = 5.0


class Server:
    """`on_connected` hears of every peer that passed the handshake, before its first request."""

    def __init__(
        self, endpoint: Endpoint, on_connected: Callable[[Connection], None] | None = None
    ) -> None:
        self._endpoint = endpoint
        self._on_connected = on_connected
        self._listener: Listener | None = None
        self._connections: dict[Connection, None] = {}
        self._of_node: Counter[str] = Counter()
        self._greeting: Newcomers[Stream] = Newcomers(endpoint.host.clock.now, self._send_away)
        self._turned_away: Counter[str] = Counter()

    @property
    def address(self) -> Address:
        if self._listener is None:
            raise RuntimeError("the server is not listening")
        return self._listener.address

    @property
    def turned_away(self) -> Counter[str]:
        """Who did not get in, by reason; whoever failed before the greeting too."""
        if self._listener is None:
            return self._turned_away
        return self._turned_away + self._listener.turned_away

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

    def _why_not(self, source: str) -> str:
        """Why no place for a greeting can be had; empty when there is one."""
        limits, greeting = self._endpoint.limits, self._greeting
        if len(self._connections) + len(greeting) >= limits.connections_max:
            return "full"
        if not greeting.room_for(source, limits.greetings_of_source_max, GIVE_WAY_TO_OWN_S):
            return "too_many_of_source"
        return "" if greeting.room(limits.greetings_max, GIVE_WAY_S) else "full"

    def _send_away(self, stream: Stream) -> None:
        self._turned_away["greeting_slow"] += 1
        stream.close()

    def _admit(self, session: Session) -> None:
        """Raises Refused; what the certificate and the greeting say was found in order."""
        self._endpoint.withdrawn.check(session.peer.node_id, session.serial)
        most = self._endpoint.limits.connections_of_node_max
        if self._of_node[session.peer.node_id] >= most:
            raise Refused(
                "",
                f"{session.peer.node_id} has {most} connections to this node already",
                ONE_NODE_RETRY_S,
                Reason.OVERLOADED,
            )

    async def _greet(self, stream: Stream, decoder: FrameDecoder) -> Session | None:
        """Who called; None when it was turned away."""
        endpoint, source = self._endpoint, source_of(stream.peer.host)
        if why := self._why_not(source):
            self._turned_away[why] += 1
            return None
        self._greeting.add(stream, source)
        try:
            timeout_s = endpoint.limits.greeting_timeout_s
            return await handshake.answer(
                stream, decoder, endpoint.introduction, timeout_s, self._admit
            )
        except Refused as refusal:
            self._turned_away[refusal.code] += 1
        except (Malformed, Disconnected, DeadlineExceeded) as error:
            if stream in self._greeting:  # else it has been counted
                self._turned_away[type(error).__name__.lower()] += 1
        finally:
            self._greeting.discard(stream)
        return None

    async def _serve(self, stream: Stream) -> None:
        endpoint = self._endpoint
        decoder = FrameDecoder(handshake.GREETING_BYTES_MAX)
        session = await self._greet(stream, decoder)
        if session is None:
            return
        connection = Connection(endpoint, stream, session, decoder)
        self._connections[connection] = None
        node_id = session.peer.node_id
        self._of_node[node_id] += 1
        try:
            if self._on_connected is not None:
                self._on_connected(connection)
            await connection.run()
        finally:
            connection.close()
            del self._connections[connection]
            self._of_node[node_id] -= 1
            if not self._of_node[node_id]:
                del self._of_node[node_id]
