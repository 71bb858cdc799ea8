"""Carries what the leader's replica wants sent: entries, pings, and the state to whom lacks it.

One task looks what is due and starts a task for each request; answers go back into the replica.
A voter that did not answer is left alone for a moment, so a dead one costs little.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import msgspec

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.records.api import PeerUnreachable, Send
from hyperscale.ledger.records.messages import (
    Append,
    Appended,
    Install,
    Installed,
    Reply,
    Request,
    decode_reply,
    encode,
)
from hyperscale.ledger.records.replica import Replica
from hyperscale.ledger.records.settings import RecordsSettings
from hyperscale.ledger.records.snapshots import PackedState
from hyperscale.runtime.host import Host, Task

R = TypeVar("R", bound=Reply)
INSTALL_TRIES = 5
"""Parts without an answer before a state is given up; it is begun again after a pause."""


class PeerClient:
    """Asks other voters, and remembers when each last answered."""

    def __init__(self, host: Host, send: Send, settings: RecordsSettings) -> None:
        self._clock = host.clock
        self._send = send
        self._settings = settings
        self._heard_at: dict[str, float] = {}

    async def ask(self, peer: str, request: Request, answer: type[R]) -> R:
        """Raises PeerUnreachable for whatever kept a proper answer from coming."""
        try:
            async with asyncio.timeout(self._settings.request_timeout_s):
                reply = decode_reply(await self._send(peer, encode(request)))
        except (OSError, TimeoutError, HyperscaleError, msgspec.DecodeError) as error:
            raise PeerUnreachable(f"{peer}: {error}") from error
        if not isinstance(reply, answer):
            raise PeerUnreachable(f"{peer} answered something else")
        self._heard_at[peer] = self._clock.now()
        return reply

    def reachable(self) -> list[str]:
        since = self._clock.now() - self._settings.reachable_s
        return sorted(peer for peer, at in self._heard_at.items() if at >= since)


class Replicator:
    def __init__(
        self,
        host: Host,
        replica: Replica,
        client: PeerClient,
        settings: RecordsSettings,
        *,
        turned: Callable[[], None],
        packed: Callable[[], Awaitable[PackedState]],
    ) -> None:
        """`turned` is called after every change of the replica; `packed` packs its state."""
        self._host = host
        self._replica = replica
        self._client = client
        self._settings = settings
        self._turned = turned
        self._pack = packed
        self._due = asyncio.Event()
        self._rests_until: dict[str, float] = {}
        self._sent_at: dict[str, float] = {}
        self._tasks: list[Task] = []

    def start(self) -> None:
        self._tasks = [
            self._host.tasks.spawn("records replicator", self._carry()),
            self._host.tasks.spawn("records replicator timer", self._rounds()),
        ]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def wake(self) -> None:
        """There may be something to send. It is looked for when this turn of the loop is over, so
        that what many callers append at once travels together."""
        self._due.set()

    async def _carry(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            if self._replica.is_leading_or_recovering:
                for peer in self._replica.peers:
                    self._serve(peer)

    async def _rounds(self) -> None:
        while True:
            await self._host.clock.sleep(self._settings.retry_s)
            if self._replica.is_leading_or_recovering:
                self._due.set()

    def _serve(self, peer: str) -> None:
        now, replica = self._host.clock.now(), self._replica
        if now < self._rests_until.get(peer, now):
            return
        if replica.lacks(peer):
            replica.installing(peer)
            self._spawn(f"install at {peer}", self._install(peer, replica.term))
            return
        ping = now - self._sent_at.get(peer, 0.0) >= self._settings.ping_s
        while (request := replica.next_for(peer, ping)) is not None:
            ping = False
            self._sent_at[peer] = now
            self._spawn(f"append at {peer}", self._append(peer, request))

    async def _append(self, peer: str, request: Append) -> None:
        try:
            reply = await self._client.ask(peer, request, Appended)
        except PeerUnreachable:
            self._replica.lost(peer, request)
            self._rest(peer)
        else:
            self._replica.confirmed(peer, request, reply)
        self._turned()

    async def _install(self, peer: str, term: int) -> None:
        index = 0
        try:
            index = await self._send_state(peer, term)
        except PeerUnreachable:
            pass
        finally:
            if not index:
                self._rest(peer)
            self._replica.installed(peer, term, index)
        self._turned()

    async def _send_state(self, peer: str, term: int) -> int:
        """The index of the state that the voter has now; 0 when it wants none."""
        packed = await self._pack()
        offset, tries, total = 0, 0, len(packed.data)
        while self._replica.leads(term):
            part = packed.part(term, offset, self._settings.part_bytes)
            try:
                reply = await self._client.ask(peer, Install(term, part), Installed)
            except PeerUnreachable:
                tries += 1
                if tries == INSTALL_TRIES:
                    raise
                await self._host.clock.sleep(self._settings.retry_s)
                continue
            self._replica.learn(reply.term)
            if not reply.granted:
                return 0
            if reply.offset >= total:
                return packed.index
            tries = tries + 1 if reply.offset <= offset else 0
            if tries == INSTALL_TRIES:
                return 0
            offset = reply.offset
        return 0

    def _rest(self, peer: str) -> None:
        self._rests_until[peer] = self._host.clock.now() + self._settings.retry_s

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._host.tasks.spawn(f"records {name}", work)
