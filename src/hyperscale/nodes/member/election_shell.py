"""A voter in the world: the election core joined to datagrams, a disk and a clock.

The shell decides nothing. It decodes what arrives, carries out effects, and ends its part in the
election for good when the disk fails: a voter that cannot remember must not vote.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from hyperscale.cluster.election import (
    BecameLeader,
    Durable,
    Effect,
    Election,
    ElectionSettings,
    ElectionState,
    Eligibility,
    Envelope,
    HandoverRefused,
    LeaderChanged,
    LostLeadership,
    Message,
    Persist,
    Send,
    SetTimer,
    list_digest,
)
from hyperscale.cluster.fencing import Fence
from hyperscale.errors import BadInput
from hyperscale.nodes.member.term_file import TermFile
from hyperscale.runtime.host import Address, Datagrams, Host, Task
from hyperscale.runtime.open_files import is_out_of_files
from hyperscale.runtime.timed_event import TimedEvent

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Envelope)
DATAGRAM_BYTES_MAX = 1_200
"""Far above any message of an election; longer ones are not looked at."""
RESOLVE_EVERY_S = 10.0
"""A voter may come back under another IP address; names are looked up this often."""
OUT_OF_FILES_PAUSE_S = 0.2
"""Until a vote is saved the voter says nothing; others wait for it about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionPlan:
    """The same on every voter of a group, but for `node_id` and `bind`."""

    group: str
    """Names the electorate, such as "managers of eu-1": strangers are not listened to."""
    node_id: str
    bind: Address
    voters: Mapping[str, Address]
    """Where each receives election datagrams: a name or an IP address."""
    settings: ElectionSettings = field(default_factory=ElectionSettings)
    directory: str = "election"

    def __post_init__(self) -> None:
        if self.node_id not in self.voters:
            raise BadInput(
                f"{self.node_id} is not among the voters of {self.group}",
                "list every voter of the role, this node included, on every node",
            )

    @property
    def list_digest(self) -> bytes:
        return list_digest(tuple(self.voters))


class Cipher(Protocol):
    """Authenticates datagrams between nodes of one cluster."""

    def seal(self, data: bytes) -> bytes: ...

    def unseal(self, data: bytes) -> bytes | None:
        """None: not from us, or tampered with, or replayed."""
        ...


class MakeElection(Protocol):
    def __call__(
        self,
        node_id: str,
        voters: Collection[str],
        settings: ElectionSettings,
        dice: random.Random,
        durable: Durable,
    ) -> Election: ...


class ElectionShell:
    """Hooks are lists: any number may be added, at any time; one that raises is reported as a
    failed task and disturbs neither the others nor the election."""

    def __init__(
        self,
        host: Host,
        plan: ElectionPlan,
        cipher: Cipher | None = None,
        make_election: MakeElection = Election,
        term_file: TermFile | None = None,
        named: Callable[[Address], str | None] = lambda address: None,
    ) -> None:
        """`named` tells who is behind an address where the network itself knows it: no other
        voter's words are taken from there."""
        self.on_become_leader: list[Callable[[int], None]] = []
        self.on_lose_leadership: list[Callable[[int, str], None]] = []
        self.on_leader_change: list[Callable[[int, str | None], None]] = []
        self.on_handover_refused: list[Callable[[str], None]] = []
        self.datagrams_ignored = 0
        self._host = host
        self._plan = plan
        self._list_digest = plan.list_digest
        self._cipher = cipher
        self._make_election = make_election
        self._named = named
        self._file = term_file or TermFile(host.disk, plan.directory)
        self._core: Election | None = None
        self._port: Datagrams | None = None
        self._tasks: list[Task] = []
        self._addresses: dict[str, Address] = {}
        self._timer_at: float | None = None
        self._sleeping_until: float | None = None
        self._timer_moved = TimedEvent()
        self._unsaved: Persist | None = None
        self._something_unsaved = asyncio.Event()
        self._over = asyncio.Event()
        self._failure: OSError | None = None

    # -- what a node asks --------------------------------------------------------------------

    @property
    def state(self) -> ElectionState:
        return self._core.state if self._core else ElectionState.INITIAL

    @property
    def term(self) -> int:
        return self._core.term if self._core else 0

    @property
    def leader(self) -> str | None:
        return self._core.leader if self._core else None

    def may_lead(self) -> bool:
        """Ask right before every act of leadership, and send its fence along."""
        return self._core is not None and self._core.may_lead(self._host.clock.now())

    def leaderless_s(self) -> float:
        """For how long no leader has acted by our support; 0: one may do so now."""
        return 0.0 if self._core is None else self._core.leaderless_s(self._host.clock.now())

    @property
    def jumps_refused(self) -> int:
        return self._core.jumps_refused if self._core else 0

    def quorum_alive(self, alive: Iterable[str]) -> bool:
        return self._core is not None and self._core.quorum_alive(alive)

    def fence(self, epoch: int = 0, attempt: int = 0) -> Fence:
        return Fence(self.term, epoch, attempt)

    async def failed(self) -> None:
        """Wait for the end of this voter: raises what the disk did, returns after `stop`."""
        await self._over.wait()
        if self._failure is not None:
            raise self._failure

    # -- life --------------------------------------------------------------------------------

    async def start(self, eligibility: Eligibility | None = None) -> None:
        """`eligibility` is what it begins with, before it could do anything."""
        durable = await self._file.load()
        plan = self._plan
        self._port = await self._host.network.bind(plan.bind, self._on_datagram)
        self._core = self._make_election(
            plan.node_id,
            tuple(plan.voters),
            plan.settings,
            self._host.random,
            durable,
        )
        spawn = self._host.tasks.spawn
        self._tasks = [
            spawn(f"election timer {plan.group}", self._run_timer()),
            spawn(f"election writer {plan.group}", self._run_writer()),
            spawn(f"election resolver {plan.group}", self._run_resolver()),
        ]
        self._apply(self._core.start(self._host.clock.now(), eligibility))

    async def stop(self) -> None:
        """Leave in good order: a leader hands over first, without waiting for the successor."""
        if self._core is not None and self._core.state is ElectionState.LEADER:
            self._apply(self._core.hand_over(self._host.clock.now(), urgent=True))
        tasks = self._tasks
        self._end("stopped")
        for task in tasks:
            try:
                await task
            except asyncio.CancelledError:
                if not task.done():
                    raise

    def set_eligibility(self, eligibility: Eligibility) -> None:
        if self._core is not None:
            self._apply(self._core.set_eligibility(self._host.clock.now(), eligibility))

    def hand_over(self, target: str | None = None, urgent: bool = False) -> None:
        if self._core is not None:
            self._apply(self._core.hand_over(self._host.clock.now(), target, urgent))

    # -- in ----------------------------------------------------------------------------------

    def _on_datagram(self, data: bytes, source: Address) -> None:
        envelope = self._open(data)
        if envelope is not None and self._named(source) not in (None, envelope.sender):
            envelope = None
        if envelope is None or self._core is None:
            self.datagrams_ignored += 1
            return
        now = self._host.clock.now()
        self._apply(self._core.receive(now, envelope.sender, envelope.message))

    def _open(self, data: bytes) -> Envelope | None:
        plain = self._cipher.unseal(data) if self._cipher else data
        if plain is None or len(plain) > DATAGRAM_BYTES_MAX:
            return None
        try:
            envelope = _DECODER.decode(plain)
        except msgspec.MsgspecError:
            return None
        known = envelope.group == self._plan.group and envelope.sender in self._plan.voters
        return envelope if known and envelope.voters == self._list_digest else None

    # -- out ---------------------------------------------------------------------------------

    def _apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self._send(to, message)
                case Persist():
                    self._unsaved = effect
                    self._something_unsaved.set()
                case SetTimer(at):
                    self._set_timer(at)
                case BecameLeader(term):
                    self._call(self.on_become_leader, term)
                case LostLeadership(term, reason):
                    self._call(self.on_lose_leadership, term, reason)
                case LeaderChanged(term, leader):
                    self._call(self.on_leader_change, term, leader)
                case HandoverRefused(reason):
                    self._call(self.on_handover_refused, reason)

    def _send(self, to: str, message: Message) -> None:
        plan = self._plan
        data = _ENCODER.encode(Envelope(plan.group, plan.node_id, self._list_digest, message))
        address = self._addresses.get(to)
        if self._port is not None and address is not None:
            self._port.send(address, self._cipher.seal(data) if self._cipher else data)

    def _set_timer(self, at: float | None) -> None:
        """A later time is noticed when the sleeper wakes; only an earlier one must wake it."""
        self._timer_at = at
        asleep = self._sleeping_until
        if at is not None and (asleep is None or at < asleep):
            self._timer_moved.set()

    def _call(self, hooks: list[Callable[..., None]], *facts: Any) -> None:
        for hook in list(hooks):
            try:
                hook(*facts)
            except Exception as error:  # noqa: BLE001 - a hook's failure is its owner's, reported
                self._host.tasks.spawn("election hook", _raise(error))

    async def _run_timer(self) -> None:
        clock = self._host.clock
        while True:
            self._timer_moved.clear()
            self._sleeping_until = self._timer_at
            due = self._timer_at
            moved = await self._timer_moved.wait(
                None if due is None else max(0.0, due - clock.now())
            )
            if not moved and self._core is not None:
                self._apply(self._core.tick(clock.now()))

    async def _run_writer(self) -> None:
        """One write at a time; of those that came meanwhile only the newest counts."""
        while True:
            await self._something_unsaved.wait()
            self._something_unsaved.clear()
            persist, self._unsaved = self._unsaved, None
            if persist is None:
                continue
            try:
                await self._file.save(persist.durable)
            except OSError as error:
                if not is_out_of_files(error):
                    self._fail(error)
                    return
                # Nothing was done, and nobody is told of it before it is.
                self._unsaved = self._unsaved or persist
                self._something_unsaved.set()
                await self._host.clock.sleep(OUT_OF_FILES_PAUSE_S)
                continue
            if self._core is not None:
                self._apply(self._core.persisted(self._host.clock.now(), persist.token))

    async def _run_resolver(self) -> None:
        """A name that does not resolve keeps its last address: DNS may fail, voters live on."""
        network = self._host.network
        while True:
            for name, address in self._plan.voters.items():
                try:
                    found = await network.resolve(address.host, address.port)
                except OSError:
                    continue
                self._addresses[name] = found[0]
            await self._host.clock.sleep(RESOLVE_EVERY_S)

    def _fail(self, error: OSError) -> None:
        self._failure = error
        self._end("the disk failed")

    def _end(self, why: str) -> None:
        core, port = self._core, self._port
        self._core = self._port = None
        if port is not None:
            port.close()
        if core is not None and core.state is ElectionState.LEADER:
            self._call(self.on_lose_leadership, core.term, why)
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._over.set()


async def _raise(error: Exception) -> None:
    raise error
