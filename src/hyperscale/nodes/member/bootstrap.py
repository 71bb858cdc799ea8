"""Discovery in the world: DNS, probes over the wire, a small file, one timer.

The shell decides nothing. Give `handlers` and `PROBES` to the node's endpoint, so that others can
find this node while it looks for them, then `start`. Managers and gates go on at once and hear of
peers through `on_found`; a worker waits in `joined`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from hyperscale.cluster.discovery import (
    Ask,
    Discovery,
    DiscoverySettings,
    DiscoveryState,
    DnsName,
    Effect,
    FormCluster,
    Found,
    GaveUp,
    HealthCache,
    Probe,
    ProbeAnswer,
    Resolve,
    SaveCache,
    SetTimer,
    StopAsking,
    StopResolving,
    Unusable,
    mismatch,
)
from hyperscale.cluster.discovery.messages import PROBE_BYTES_MAX
from hyperscale.cluster.discovery.srv import LookupFailed
from hyperscale.cluster.identity import Endpoint as Place
from hyperscale.cluster.identity import Node, NodeId
from hyperscale.errors import RunFailed
from hyperscale.nodes.member.service_lookup import ServiceLookup
from hyperscale.runtime.host import Address, Host, Task
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.messages import Priority, Registry
from hyperscale.wire.peer import Peer
from hyperscale.wire.serving import Call, Handler

PROBES: Final = Registry()
PROBES.add(Probe, priority=Priority.CRITICAL, max_bytes=PROBE_BYTES_MAX)
PROBES.add(ProbeAnswer, priority=Priority.CRITICAL, max_bytes=PROBE_BYTES_MAX)

CACHE_PATH = "peers"
_NEXT = "peers.new"
CACHE_BYTES_MAX = 64 * 1024


class Bootstrap:
    """Hooks are called once for each peer found, when this node became the first, each time
    somebody asked did not take us in, with the reason, and when the search changed its state; what
    they raise is reported as a failed task and disturbs nothing."""

    def __init__(
        self,
        host: Host,
        me: Probe,
        settings: DiscoverySettings,
        nameservers: Sequence[Address] = (),
    ) -> None:
        self.on_found: list[Callable[[Node], None]] = []
        self.on_formed: list[Callable[[], None]] = []
        self.on_unanswered: list[Callable[[Address, Exception], None]] = []
        self.on_state: list[Callable[[DiscoveryState, DiscoveryState], None]] = []
        self.counts: Counter[str] = Counter()
        self._host = host
        self._me = me
        self._settings = settings
        self._services = ServiceLookup(host, nameservers)
        self._endpoint: Endpoint | None = None
        self._core: Discovery | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asking: dict[Place, Task] = {}
        self._resolving: dict[DnsName, Task] = {}
        self._unsaved: bytes | None = None
        self._saving = False
        self._state_told = DiscoveryState.INITIAL
        self._decided = asyncio.Event()
        self._failure = ""

    # -- what a node asks --------------------------------------------------------------------

    @property
    def state(self) -> DiscoveryState:
        return self._core.state if self._core is not None else DiscoveryState.INITIAL

    @property
    def looked(self) -> bool:
        """It has found somebody, or has asked everybody once and found nobody."""
        return self._core is not None and (self._core.formed or self.state is DiscoveryState.JOINED)

    def metrics(self) -> dict[str, int]:
        """Counters by name."""
        core = {} if self._core is None else {**self._core.counts, "rounds": self._core.rounds}
        return {**core, **self.counts}

    @property
    def handlers(self) -> Mapping[type[msgspec.Struct], Handler]:
        return {Probe: self._on_probe}

    async def start(self, endpoint: Endpoint) -> None:
        """Begin to look; the node should be answering already."""
        self._endpoint = endpoint
        cache = HealthCache(self._settings.cache_lifetime_s, self._settings.cache_max)
        try:
            saved = await self._host.disk.read(CACHE_PATH, limit=CACHE_BYTES_MAX)
        except OSError:
            saved = b""
        now = self._host.clock.now()
        if saved:
            cache.load(now, saved)
        self._core = Discovery(self._me, self._settings, self._host.random, cache)
        self._carry(self._core.start(now))

    async def joined(self) -> None:
        """Return when a peer was found; raises RunFailed when the deadline passed before."""
        await self._decided.wait()
        if self._failure:
            raise RunFailed(
                f"{self._me.node.node_id} found no cluster: {self._failure}",
                "check the seeds, and that cluster and environment ids are the same everywhere",
            )

    def members_are(self, members: Collection[NodeId]) -> None:
        """Who is in the cluster; tell whenever it changes, so that they are not asked again."""
        if self._core is not None:
            self._core.members_are(members)

    def stop(self) -> None:
        """Look no more. Tasks that are left belong to the host and end with it."""
        self._core = None
        self._set_timer(None)
        for task in [*self._asking.values(), *self._resolving.values()]:
            task.cancel()
        self._asking.clear()
        self._resolving.clear()

    # -- effects -----------------------------------------------------------------------------

    def _carry(self, effects: list[Effect]) -> None:
        if self.state is not self._state_told:
            before, self._state_told = self._state_told, self.state
            self._call(self.on_state, before, self.state)
        for effect in effects:
            match effect:
                case Ask(address, probe):
                    name = f"probe {address[0]}:{address[1]}"
                    self._asking[address] = self._host.tasks.spawn(name, self._ask(address, probe))
                case StopAsking(address):
                    _cancel(self._asking.pop(address, None))
                case Resolve(name):
                    task = self._host.tasks.spawn(f"look up {name}", self._resolve(name))
                    self._resolving[name] = task
                case StopResolving(name):
                    _cancel(self._resolving.pop(name, None))
                case Found(node):
                    self._decided.set()
                    self._call(self.on_found, node)
                case Unusable(address, reason):
                    self._call(self.on_unanswered, Address(*address), Refused("", reason))
                case FormCluster():
                    self._call(self.on_formed)
                case SaveCache(data):
                    self._save(data)
                case SetTimer(at):
                    self._set_timer(at)
                case GaveUp(reason):
                    self._failure = reason
                    self._decided.set()

    def _call(self, hooks: Sequence[Callable[..., None]], *facts: Any) -> None:
        for hook in list(hooks):
            try:
                hook(*facts)
            except Exception as error:  # noqa: BLE001 - a hook's failure is its owner's, reported
                self._host.tasks.spawn("discovery hook", _raise(error))

    def _set_timer(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            # At least a millisecond: loops round timers, and an early one must not spin.
            wait_s = max(0.001, at - self._host.clock.now())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._core is not None:
            self._carry(self._core.tick(self._host.clock.now()))

    # -- probes ------------------------------------------------------------------------------

    def _on_probe(self, call: Call, probe: Probe) -> ProbeAnswer:
        problem = mismatch(self._me, probe)
        if problem is not None:
            self.counts["probers_mismatched"] += 1
            raise Refused(call.kind.name, problem, code=Reason.WRONG_CLUSTER)
        if probe.node.node_id != call.peer.node_id:
            raise Refused(call.kind.name, f"{call.peer.node_id} probes under another name")
        if self._core is not None:
            self._carry(self._core.probed(self._host.clock.now(), probe))
        return ProbeAnswer(self._me.cluster_id, self._me.environment_id, self._me.node)

    async def _ask(self, address: Place, probe: Probe) -> None:
        assert self._endpoint is not None
        peer = Peer(self._endpoint, Address(*address))
        problem: Exception | None = None
        try:
            # The core's own timeout is the one that counts; this one never comes first.
            answer = await peer.request(probe, ProbeAnswer, 2 * self._settings.probe_timeout_s)
        except (WireError, OSError, ValueError) as error:  # ValueError: no address, or needs TLS
            problem = error
        finally:
            peer.close()
        self._asking.pop(address, None)
        if self._core is None:
            return
        now = self._host.clock.now()
        if problem is None:
            self._carry(self._core.answered(now, address, answer))
        else:
            self._call(self.on_unanswered, peer.address, problem)
            reason = str(problem) or type(problem).__name__
            self._carry(self._core.unanswered(now, address, reason))

    # -- DNS ---------------------------------------------------------------------------------

    async def _resolve(self, name: DnsName) -> None:
        found: list[Address] = []
        lifetime_s: float | None = None
        reason = ""
        try:
            if name.service:
                found, lifetime_s = await self._services.find(name.name)
            else:
                found = await self._host.network.resolve(name.name, name.port)
        except (LookupFailed, OSError, ValueError) as error:  # ValueError: not a name at all
            reason = str(error) or type(error).__name__
        self._resolving.pop(name, None)
        if self._core is None:
            return
        now = self._host.clock.now()
        if reason:
            self._carry(self._core.unresolved(now, name, reason))
        else:
            places = [(address.host, address.port) for address in found]
            self._carry(self._core.resolved(now, name, places, lifetime_s))

    # -- the cache file ----------------------------------------------------------------------

    def _save(self, data: bytes) -> None:
        self._unsaved = data
        if not self._saving:
            self._saving = True
            self._host.tasks.spawn("save known peers", self._write())

    async def _write(self) -> None:
        """Whole file or none. It is a hint: an error is counted and otherwise no loss."""
        disk = self._host.disk
        try:
            while self._unsaved is not None:
                data, self._unsaved = self._unsaved, None
                if _NEXT in await disk.list("."):
                    await disk.remove(_NEXT)
                file = await disk.open(_NEXT)
                try:
                    await file.append_and_sync(data)
                finally:
                    await file.close()
                await disk.rename(_NEXT, CACHE_PATH)
        except OSError:
            self.counts["cache_write_failed"] += 1
        finally:
            self._saving = False


def _cancel(task: Task | None) -> None:
    if task is not None:
        task.cancel()


async def _raise(error: Exception) -> None:
    raise error
