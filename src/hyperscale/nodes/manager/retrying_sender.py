"""Commands to other nodes: each is sent until it is answered, overtaken, or of no use any more.

One connection per worker. A command to a part is repeated with growing pauses; a newer command of
the same sort for the same part takes its place. Whoever sent it is told the answer once. Whether a
worker can be connected at all is told each time it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import msgspec

from hyperscale.cluster.overload.backoff import Backoff
from hyperscale.runtime.host import Address, Host, Task
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import (
    Disconnected,
    NobodyListens,
    Reason,
    Refused,
    RemoteFailed,
    WireError,
)
from hyperscale.wire.peer import Peer

A = TypeVar("A")
OnFailure = Callable[[WireError | OSError], None]

# Doubled after each try; a worker that is back after a pause is spoken to within the last one.
BACKOFF = Backoff(base_delay_s=0.4, delay_max_s=2.0)
REQUEST_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class _Sending:
    key: tuple[str, ...]
    number: int
    node_id: str
    message: msgspec.Struct
    expect: type[Any]
    on_answer: Callable[[Any], None]
    on_failure: OnFailure | None


class RetryingSender:
    def __init__(
        self,
        host: Host,
        endpoint: Callable[[], Endpoint],
        role: str,
        on_reached: Callable[[str], None] = lambda node_id: None,
        on_unreached: Callable[[str, bool], None] = lambda node_id, refused: None,
    ) -> None:
        """`on_unreached` is told whether the node's machine refused the connection, that is, has
        no such process any more."""
        self._on_reached = on_reached
        self._on_unreached = on_unreached
        self._host = host
        self._endpoint = endpoint
        self._role = role
        self._peers: dict[str, Peer] = {}
        self._sendings: dict[tuple[str, ...], tuple[int, Task]] = {}
        self._started = 0

    def __len__(self) -> int:
        return len(self._sendings)

    def is_sending(self, key: tuple[str, ...]) -> bool:
        return key in self._sendings

    def knows(self, node_id: str) -> bool:
        return node_id in self._peers

    def is_connected(self, node_id: str) -> bool:
        peer = self._peers.get(node_id)
        return peer is not None and peer.connected

    def at(self, node_id: str, address: Address) -> None:
        """Where a node is reached; a node that came back may be elsewhere."""
        known = self._peers.get(node_id)
        if known is not None and known.address == address:
            return
        if known is not None:
            known.close()
        self._peers[node_id] = Peer(
            self._endpoint(), address, expect_role=self._role, expect_node=node_id
        )

    def peer(self, node_id: str) -> Peer | None:
        return self._peers.get(node_id)

    def drop(self, node_id: str) -> None:
        peer = self._peers.pop(node_id, None)
        if peer is not None:
            peer.close()

    def send(
        self,
        key: tuple[str, ...],
        node_id: str,
        message: msgspec.Struct,
        expect: type[A],
        on_answer: Callable[[A], None],
        on_failure: OnFailure | None = None,
        attempts: int | None = None,
    ) -> None:
        """`key` names the command; the same key again replaces it. Without `attempts` it goes on
        until `recall`ed."""
        self.cancel(key)
        self._started += 1
        sending = _Sending(key, self._started, node_id, message, expect, on_answer, on_failure)
        task = self._host.tasks.spawn(
            " ".join(("tell", node_id, *key)), self._go(sending, attempts)
        )
        self._sendings[key] = (self._started, task)

    def cancel(self, key: tuple[str, ...]) -> None:
        sending = self._sendings.pop(key, None)
        if sending is not None:
            sending[1].cancel()

    def drop_all(self) -> None:
        """Nobody is to be told anything any more."""
        for key in list(self._sendings):
            self.cancel(key)
        for node_id in list(self._peers):
            self.drop(node_id)

    async def _go(self, sending: _Sending, attempts: int | None) -> None:
        for tries in count():
            try:
                answer = await self._ask(sending)
            except (WireError, OSError) as error:
                if is_too_large(error) or (attempts is not None and tries + 1 >= attempts):
                    if self._over(sending) and sending.on_failure is not None:
                        sending.on_failure(error)
                    return
                await self._host.clock.sleep(BACKOFF.delay_s(tries, self._host.random))
            else:
                if self._over(sending):
                    sending.on_answer(answer)
                return

    async def _ask(self, sending: _Sending) -> Any:
        peer = self._peers.get(sending.node_id)
        if peer is None:
            raise Disconnected(f"{sending.node_id} is not registered")
        try:
            answer = await peer.request(sending.message, sending.expect, REQUEST_TIMEOUT_S)
        except (WireError, OSError) as error:
            # One that is slow to answer has been reached.
            if not peer.connected and not isinstance(error, Refused | RemoteFailed):
                self._on_unreached(sending.node_id, isinstance(error, NobodyListens))
            raise
        self._on_reached(sending.node_id)
        return answer

    def _over(self, sending: _Sending) -> bool:
        """False when a newer command has taken this one's place."""
        known = self._sendings.get(sending.key)
        if known is None or known[0] != sending.number:
            return False
        del self._sendings[sending.key]
        return True


def is_too_large(error: Exception) -> bool:
    """It was never sent, and never will be."""
    return isinstance(error, Refused) and error.code == Reason.TOO_LARGE
