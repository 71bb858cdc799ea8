"""Full-state exchanges over the node's own connections: authenticated, on the one TCP port.

Membership speaks to a stream. Here a stream is an exchange: requests under one id: what the
caller wrote travels when it drains, and the answer brings what the other side wrote meanwhile. So
certificates, roles, cluster, environment and versions are judged by the wire's handshake before a
byte of membership is looked at. Each message also proves that its sender holds the cluster secret:
without it a node could read the view over TCP and yet never be heard by UDP.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec

from hyperscale.cluster.membership.messages import EXCHANGE_BYTES_MAX
from hyperscale.runtime.host import Address, Host, Stream
from hyperscale.runtime.logs import correlated
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.serving import Call

# Exchanges open at one time; membership itself takes fewer and ends them within seconds.
OPEN_MAX = 256
ID_BITS = 64

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=32)]


class Said(msgspec.Struct, frozen=True, tag="member.exchange"):
    """`id` names the exchange, in the logs of both sides too."""

    id: Id
    proof: Annotated[bytes, msgspec.Meta(max_length=64)]
    data: bytes


class Answered(msgspec.Struct, frozen=True, tag="member.exchange_answer"):
    data: bytes


# The frame of a full view, and room for the fields around it.
_BYTES_MAX: Final = EXCHANGE_BYTES_MAX + 1_024
EXCHANGES: Final = Registry()
EXCHANGES.add(Said, priority=Priority.HIGH, max_bytes=_BYTES_MAX)
EXCHANGES.add(Answered, priority=Priority.HIGH, max_bytes=_BYTES_MAX)


def proof_of(secret: str | None, node_id: str) -> bytes:
    """Says that `node_id` knows the secret; empty where a cluster has none."""
    if secret is None:
        return b""
    return hmac.digest(secret.encode(), b"hyperscale exchange " + node_id.encode(), hashlib.sha256)


class ExchangeService:
    """Both sides. `on_refused` hears to whom we called in vain and why, once per exchange."""

    def __init__(
        self,
        host: Host,
        node_id: str,
        secret: str | None,
        previous_secret: str | None,
        on_refused: Callable[[Address, WireError], None],
    ) -> None:
        self._host = host
        self._secrets = [secret] if previous_secret is None else [secret, previous_secret]
        self._proof = proof_of(secret, node_id)
        self._on_refused = on_refused
        self._on_stream: Callable[[Stream], Awaitable[None]] | None = None
        self._open: dict[tuple[str, str], Served] = {}
        self.endpoint: Endpoint | None = None
        self.address = Address("", 0)
        self.counts: Counter[str] = Counter()
        self.turned_away: Counter[str] = Counter()

    # -- as a network ------------------------------------------------------------------------

    def listen(self, on_stream: Callable[[Stream], Awaitable[None]]) -> ExchangeService:
        self._on_stream = on_stream
        return self

    def close(self) -> None:
        self._on_stream = None

    def connect(self, address: Address, timeout_s: float) -> Stream:
        assert self.endpoint is not None
        exchange_id = f"{self._host.random.getrandbits(ID_BITS):016x}"
        peer = Peer(self.endpoint, address)
        return Calling(peer, exchange_id, self._proof, timeout_s, self._on_refused)

    # -- as a handler ------------------------------------------------------------------------

    async def said(self, call: Call, message: Said) -> Answered:
        if not self._proven(call.peer.node_id, message.proof):
            self.counts["wrong_secret"] += 1
            raise Refused(call.kind.name, "the cluster secret is another one")
        key = (call.peer.node_id, message.id)
        served = self._open.get(key)
        if served is None:
            served = self._begin(call, key)
        return Answered(await served.turn(message.data))

    def _proven(self, node_id: str, proof: bytes) -> bool:
        known = (proof_of(secret, node_id) for secret in self._secrets)
        return any(hmac.compare_digest(proof, expected) for expected in known)

    def _begin(self, call: Call, key: tuple[str, str]) -> Served:
        on_stream = self._on_stream
        if on_stream is None or len(self._open) >= OPEN_MAX:
            raise Refused(call.kind.name, "no exchange can be taken on now", 1.0, Reason.OVERLOADED)
        served = self._open[key] = Served(Address(call.peer.node_id, 0))

        async def serve() -> None:
            try:
                with correlated(correlation_id=key[1]):
                    await on_stream(served)
            finally:
                served.close()
                del self._open[key]

        self._host.tasks.spawn(f"exchange with {key[0]}", serve())
        return served


class Calling(Stream):
    """The caller's end."""

    def __init__(
        self,
        peer: Peer,
        exchange_id: str,
        proof: bytes,
        timeout_s: float,
        on_refused: Callable[[Address, WireError], None],
    ) -> None:
        self._peer = peer
        self._exchange_id = exchange_id
        self._proof = proof
        self._timeout_s = timeout_s
        self._on_refused = on_refused
        self._answered_by = peer.address
        self._out = bytearray()
        self._in = bytearray()

    @property
    def peer(self) -> Address:
        """Who answered last, by its id; where we called, as long as nobody has."""
        return self._answered_by

    def peer_certificate(self) -> bytes | None:
        return None  # judged by the handshake already

    def write(self, data: bytes) -> None:
        self._out += data

    async def drain(self) -> None:
        said = Said(self._exchange_id, self._proof, bytes(self._out))
        self._out.clear()
        try:
            answer = await self._peer.request(said, Answered, self._timeout_s)
        except WireError as error:
            with correlated(correlation_id=self._exchange_id):
                self._on_refused(self._peer.address, error)
            raise
        assert self._peer.identity is not None
        self._answered_by = Address(self._peer.identity.node_id, 0)
        self._in += answer.data

    async def read(self, limit: int) -> bytes:
        data = bytes(self._in[:limit])
        del self._in[:limit]
        return data

    def close(self) -> None:
        self._peer.close()


class Served(Stream):
    """The answering end: a turn ends when the reader wants more than there is, or has finished."""

    def __init__(self, peer: Address) -> None:
        self._peer = peer
        self._in = bytearray()
        self._out = bytearray()
        self._fed = asyncio.Event()
        self._idle = asyncio.Event()
        self._ended = False

    @property
    def peer(self) -> Address:
        return self._peer

    def peer_certificate(self) -> bytes | None:
        return None

    async def turn(self, data: bytes) -> bytes:
        self._in += data
        self._idle.clear()
        self._fed.set()
        if not self._ended:
            await self._idle.wait()
        answer = bytes(self._out)
        self._out.clear()
        return answer

    async def read(self, limit: int) -> bytes:
        while not self._in:
            if self._ended:
                return b""
            self._fed.clear()
            self._idle.set()
            await self._fed.wait()
        data = bytes(self._in[:limit])
        del self._in[:limit]
        return data

    def write(self, data: bytes) -> None:
        self._out += data

    async def drain(self) -> None:
        """Nothing to wait for: the answer takes all."""

    def close(self) -> None:
        self._ended = True
        self._idle.set()
        self._fed.set()
