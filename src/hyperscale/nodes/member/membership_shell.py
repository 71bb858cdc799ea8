"""Joins the membership core to a host: datagrams, exchange streams, one timer, one file.

The shell decides nothing. It keeps the core's deadline armed, runs exchanges as tasks, and hands
events to callbacks after the packet that caused them is done, each isolated from the errors of the
others.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hyperscale.cluster.identity import Endpoint, Node, NodeId
from hyperscale.cluster.membership import (
    Changed,
    Departed,
    Effect,
    Exchange,
    Heartbeat,
    Membership,
    MembershipConfig,
    MemberState,
    Persist,
    Refused,
    SeedSilent,
    Send,
)
from hyperscale.nodes.member.exchange_stream import ExchangeStream
from hyperscale.nodes.member.incarnation_file import IncarnationFile
from hyperscale.runtime.host import Address, Datagrams, Host, Listener, Stream
from hyperscale.wire.errors import WireError

_EVENTS = (Changed, Heartbeat, SeedSilent)  # a tuple: a union is made anew each time it is read
EXCHANGE_TIMEOUT_S = 10.0
EXCHANGES_OUT_MAX = 8  # at one time; more are refused and tried again by the core
EXCHANGES_IN_MAX = 64
PERSIST_RETRY_S = 0.5
AUDIT_MAX = 1_000
LOOPBACK = Address("127.0.0.1", 0)


class AuditRecord(NamedTuple):
    at: float
    event: str
    node_id: str
    state: str
    incarnation: int
    via: str


@dataclass(frozen=True, slots=True)
class MemberSettings:
    node_id: str
    role: str = "probe"
    datacenter: str = "dc1"
    bind_udp: Address = LOOPBACK
    bind_tcp: Address = LOOPBACK
    advertise: Address | None = None  # what others are told; port 0: the bound one
    seeds: tuple[Endpoint, ...] = ()  # stream addresses


class MembershipShell:
    def __init__(
        self,
        host: Host,
        settings: MemberSettings,
        config: MembershipConfig | None = None,
        core: Callable[..., Membership] = Membership,
        listen_tls: ssl.SSLContext | None = None,
        connect_tls: ssl.SSLContext | None = None,
        named: Callable[[Address], NodeId | None] = lambda address: None,
    ) -> None:
        """`named` tells who is behind an address where the network itself knows it: nobody else's
        words are taken from there."""
        self._host = host
        self._settings = settings
        self._config = config or MembershipConfig()
        self._make_core = core
        self._listen_tls = listen_tls
        self._connect_tls = connect_tls
        self._named = named
        self._file = IncarnationFile(host.disk)
        self.core: Membership
        """Once it has started; `_core` is None before."""
        self._core: Membership | None = None
        self._datagrams: Datagrams | None = None
        self._listener: Listener | None = None
        self._loop: asyncio.AbstractEventLoop
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = 0.0
        self._wanted_limit = 0
        self._persisting = False
        self._exchanges_out = 0
        self._exchanges_in = 0
        self._departed = asyncio.Event()
        self._events: deque[Changed | Heartbeat | SeedSilent] = deque()
        self._on_change: list[Callable[[Changed], None]] = []
        self._on_heartbeat: list[Callable[[Heartbeat], None]] = []
        self._on_seed_silent: list[Callable[[SeedSilent], None]] = []
        self._stopped = False
        self.counts: Counter[str] = Counter()
        self.audit: deque[AuditRecord] = deque(maxlen=AUDIT_MAX)

    # --- reading ------------------------------------------------------------------------------

    @property
    def me(self) -> Node:
        return self.core.me

    def metrics(self) -> dict[str, float]:
        """Counters and gauges by name."""
        core = self.core
        states = Counter(member.state for member in core.members())
        gauges = {
            "peers_unconfirmed": core.unconfirmed,
            "peers_alive": states[MemberState.ALIVE],
            "peers_suspect": states[MemberState.SUSPECT],
            "peers_dead": states[MemberState.DEAD],
            "peers_left": states[MemberState.LEFT],
            "health_score": core.health_score,
            "queued_news": core.queued_news,
            "incarnation": core.me.incarnation,
        }
        return {**core.counts, **self.counts, **gauges}

    # --- events -------------------------------------------------------------------------------

    def on_change(self, callback: Callable[[Changed], None]) -> None:
        """Called for every change of belief; see `Changed.confirmed` before reacting to a death."""
        self._on_change.append(callback)

    def on_heartbeat(self, callback: Callable[[Heartbeat], None]) -> None:
        self._on_heartbeat.append(callback)

    def on_seed_silent(self, callback: Callable[[SeedSilent], None]) -> None:
        self._on_seed_silent.append(callback)

    # --- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Bind, take a fresh incarnation durably, then speak to the seeds."""
        host, settings = self._host, self._settings
        self._loop = asyncio.get_running_loop()
        durable = await self._file.read()
        self._datagrams = await host.network.bind(settings.bind_udp, self._on_datagram)
        self._listener = await host.network.listen(
            settings.bind_tcp, self._on_stream, self._listen_tls
        )
        me = Node(
            settings.node_id,
            0,
            settings.role,
            settings.datacenter,
            self._advertised(self._datagrams.address),
            self._advertised(self._listener.address),
        )
        core = self._make_core(me, self._config, host.random, durable)
        for effect in core.start(host.clock.now()):
            assert isinstance(effect, Persist)
            await self._file.write(effect.incarnation)
            self._core = self.core = core
            self._carry(core.persisted(host.clock.now(), effect.incarnation))
        self._carry(core.join(host.clock.now(), settings.seeds))

    def join(self, seeds: Iterable[Endpoint], *, configured: bool = True) -> None:
        self._carry(self.core.join(self._host.clock.now(), seeds, configured=configured))

    def confirm(self, node_id: str) -> None:
        """It has spoken to us by another channel."""
        self._carry(self.core.confirm(self._host.clock.now(), node_id))

    async def leave(self) -> None:
        """Tell the others and return when they have been told, or after a few seconds."""
        self._carry(self.core.leave(self._host.clock.now()))
        await self._departed.wait()

    def stop(self) -> None:
        """Close ports and timers; tasks belong to the host and end with it."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._datagrams is not None:
            self._datagrams.close()
        if self._listener is not None:
            self._listener.close()

    def _advertised(self, bound: Address) -> Endpoint:
        told = self._settings.advertise
        return bound if told is None else (told.host, told.port or bound.port)

    # --- datagrams ----------------------------------------------------------------------------

    def _on_datagram(self, data: bytes, source: Address) -> None:
        if self._core is None or self._stopped:
            return
        self.counts["datagrams_in"] += 1
        try:
            effects = self._core.receive(self._host.clock.now(), data, self._named(source))
        except Refused as refused:
            self.counts[f"refused_{refused.reason}"] += 1
            return
        self._carry(effects)

    # --- effects ------------------------------------------------------------------------------

    def _carry(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self._send(effect)
            elif isinstance(effect, _EVENTS):
                self._announce(effect)
            elif isinstance(effect, Exchange):
                self._call(effect.to)
            elif isinstance(effect, Persist):
                self._persist(effect.incarnation)
            else:
                assert isinstance(effect, Departed)
                self._departed.set()
        self._arm()

    def _send(self, effect: Send) -> None:
        assert self._datagrams is not None
        assert len(effect.data) <= self._config.datagram_bytes_max
        self.counts["datagrams_out"] += 1
        self.counts["datagram_bytes_out"] += len(effect.data)
        self._datagrams.send(Address(*effect.to), effect.data)

    def _persist(self, limit: int) -> None:
        self._wanted_limit = max(self._wanted_limit, limit)
        if not self._persisting and not self._stopped:
            self._persisting = True
            self._host.tasks.spawn("membership incarnation", self._write_limit())

    async def _write_limit(self) -> None:
        """A failed disk costs us refutations beyond the reserved block, not our membership."""
        while True:
            limit = self._wanted_limit
            try:
                await self._file.write(limit)
            except OSError:
                self.counts["persist_failed"] += 1
                await self._host.clock.sleep(PERSIST_RETRY_S)
                continue
            if limit == self._wanted_limit:
                break
        self._persisting = False
        self._carry(self.core.persisted(self._host.clock.now(), limit))

    def _announce(self, event: Changed | Heartbeat | SeedSilent) -> None:
        if isinstance(event, Changed):
            self.audit.append(
                AuditRecord(
                    self._host.clock.wall(),
                    event.change.value,
                    event.node.node_id,
                    event.state.name,
                    event.incarnation,
                    event.via.value,
                )
            )
        if not self._events:
            self._loop.call_soon(self._deliver)
        self._events.append(event)

    def _deliver(self) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Changed):
                self._call_back(self._on_change, event)
            elif isinstance(event, Heartbeat):
                self._call_back(self._on_heartbeat, event)
            else:
                self._call_back(self._on_seed_silent, event)

    def _call_back(self, callbacks: list[Callable[..., None]], event: object) -> None:
        for callback in callbacks:
            try:
                callback(event)
            except Exception as error:  # noqa: BLE001 - one listener must not silence the others
                self.counts["callback_errors"] += 1
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "membership callback failed", "exception": error}
                )

    # --- timer --------------------------------------------------------------------------------

    def _arm(self) -> None:
        due, timer = self.core.deadline, self._timer
        if self._stopped or (timer is not None and self._armed_for <= due):
            return
        if timer is not None:
            timer.cancel()
        # At least a millisecond: loops round timers, and an early one must not spin.
        wait_s = max(0.001, due - self._host.clock.now())
        self._armed_for = due
        self._timer = self._loop.call_later(wait_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._carry(self.core.tick(self._host.clock.now()))

    # --- exchanges ----------------------------------------------------------------------------

    def _call(self, to: Endpoint) -> None:
        if self._stopped:
            return
        if self._exchanges_out >= EXCHANGES_OUT_MAX:
            self.counts["exchanges_refused"] += 1
            self._carry(self.core.exchange_failed(self._host.clock.now(), to))
            return
        self._exchanges_out += 1
        self._host.tasks.spawn(f"membership exchange {to[0]}:{to[1]}", self._exchange(to))

    async def _exchange(self, to: Endpoint) -> None:
        try:
            async with asyncio.timeout(EXCHANGE_TIMEOUT_S):
                await self._talk(to)
        except (OSError, TimeoutError, Refused, WireError):
            self._carry(self.core.exchange_failed(self._host.clock.now(), to))
        finally:
            self._exchanges_out -= 1

    async def _talk(self, to: Endpoint) -> None:
        clock = self._host.clock
        stream = await self._host.network.connect(
            Address(*to), self._connect_tls, timeout_s=EXCHANGE_TIMEOUT_S
        )
        wire = ExchangeStream(stream)
        try:
            await wire.send(self.core.summary(clock.now()))
            answer = await wire.receive()
            speaker = self._named(stream.peer)
            reply, effects = self.core.reply(clock.now(), to, answer, speaker)
            self._carry(effects)
            await wire.send(reply)
        finally:
            wire.close()
            self.counts["stream_bytes_out"] += wire.bytes_out

    async def _on_stream(self, stream: Stream) -> None:
        if self._core is None or self._stopped or self._exchanges_in >= EXCHANGES_IN_MAX:
            self.counts["exchanges_refused"] += 1
            return
        self._exchanges_in += 1
        try:
            async with asyncio.timeout(EXCHANGE_TIMEOUT_S):
                await self._answer(stream)
        except (OSError, TimeoutError, WireError):
            self.counts["exchanges_broken"] += 1
        except Refused as refused:
            self.counts[f"refused_{refused.reason}"] += 1
        finally:
            self._exchanges_in -= 1

    async def _answer(self, stream: Stream) -> None:
        wire = ExchangeStream(stream)
        for _ in range(2):
            message, speaker = await wire.receive(), self._named(stream.peer)
            answer, effects = self.core.exchanged(self._host.clock.now(), message, speaker)
            self._carry(effects)
            if answer is not None:
                await wire.send(answer)
        self.counts["stream_bytes_out"] += wire.bytes_out
