"""A bare member as a process: it finds its cluster, is counted in it, may vote, and can be asked.

The parts know nothing of each other; this file introduces them. One TCP port carries the wire
(queries, discovery, full-state exchanges), one UDP port the sealed datagrams. Gates, managers and
workers are this with more messages: give their kinds and handlers to `Node`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from hyperscale.cluster.discovery import Probe, ProbeAnswer
from hyperscale.cluster.discovery.messages import are_apart, mismatch
from hyperscale.cluster.identity import Node as Member
from hyperscale.cluster.membership import Change, Changed, Heartbeat
from hyperscale.cluster.overload import (
    SETTINGS_BY_ROLE,
    Admission,
    OverloadDetector,
    OverloadSettings,
    RateLimiter,
    RateLimitSettings,
    Resources,
)
from hyperscale.nodes.member import report
from hyperscale.nodes.member.admission import NodeAdmission
from hyperscale.nodes.member.bootstrap import PROBES, Bootstrap
from hyperscale.nodes.member.certificate_files import CertificateFiles
from hyperscale.nodes.member.election_shell import ElectionShell
from hyperscale.nodes.member.exchanges import EXCHANGES, Answered, ExchangeService, Said
from hyperscale.nodes.member.incarnation_file import IncarnationFile
from hyperscale.nodes.member.membership_shell import MembershipShell
from hyperscale.nodes.member.metrics_page import NodePages
from hyperscale.nodes.member.node_parts import introduction_of, membership_of, sealer_of
from hyperscale.nodes.member.operator_log import OperatorLog
from hyperscale.nodes.member.queries import (
    QUERIES,
    AskMembers,
    AskStatus,
    Members,
    Status,
    Vitals,
)
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.member.shared_port import SharedPort
from hyperscale.nodes.member.voting import Voting
from hyperscale.nodes.protocol.senders import senders_to
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address, Host, Task
from hyperscale.runtime.page_server import PageServer
from hyperscale.wire.connection import Connection
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Reason, Refused, WireError
from hyperscale.wire.messages import Registry
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call, Handler

# How often health and leadership are looked at for what our probes carry.
BEAT_S = 0.5
# A loop that runs this late hurts nobody: it is a fifth of a probe's timeout. Twice that is
# overload. On a shared machine the lag is some milliseconds one moment and tens the next.
LAG_FLOOR_S = 0.1

_vitals = msgspec.msgpack.Decoder(Vitals)


class Node:
    def __init__(
        self,
        host: Host,
        settings: NodeSettings,
        kinds: Registry | None = None,
        handlers: Mapping[type[msgspec.Struct], Handler] | None = None,
        limits: RateLimitSettings | None = None,
        only_gates: bool = False,
    ) -> None:
        self.settings = settings
        self._only_gates = only_gates
        self.admission = NodeAdmission(
            host,
            Admission(SETTINGS_BY_ROLE.get(settings.role)),
            RateLimiter(limits),
            OverloadDetector(OverloadSettings(baseline_floor_s=LAG_FLOOR_S)),
        )
        self.counts: Counter[str] = Counter()
        self.vitals: dict[str, Vitals] = {}
        self.queue: Callable[[], float | None] = lambda: None
        """How full the queues of the role are, 0 to 1."""
        self.pulse = b""
        """What the role adds to `Vitals`; told with the next beat."""
        self._host = host
        self.log = logs.logger("node", node_id=settings.id)
        self._registry = Registry()
        for more in (QUERIES, PROBES, EXCHANGES, *([kinds] if kinds else [])):
            self._registry.include(more)
        self._handlers = dict(handlers or {})
        self._port = SharedPort(
            host,
            sealer_of(settings, host.clock, settings.secret, settings.previous_secret),
            sealer_of(
                settings, host.clock, settings.manager_secret, settings.previous_manager_secret
            ),
        )
        self._exchanges = ExchangeService(
            host,
            settings.id,
            settings.secret,
            settings.previous_secret,
            self._exchange_failed,
        )
        self._operator = OperatorLog(self.log, host.clock)
        self._beats = 0
        self._last_vitals: Vitals | None = None
        self._started_at = 0.0
        self.started = False
        self.endpoint: Endpoint
        self.server: Server
        self.certificates: CertificateFiles
        self.membership: MembershipShell
        self.voting: Voting | None = None
        self.syncing: Callable[[], bool] = lambda: False
        """Whether a voter has still to catch up with the others; its role says so."""
        self.bootstrap: Bootstrap | None = None
        self.pages = NodePages()
        """A role adds to it before `start`."""
        self.page_server: PageServer | None = None
        self.metrics_address: Address | None = None
        self.failure: Exception | None = None
        self.over = asyncio.Event()
        """Set when this node cannot go on by itself."""

    # -- reading -----------------------------------------------------------------------------

    def now(self) -> float:
        return self._host.clock.now()

    @property
    def uptime_s(self) -> float:
        return self.now() - self._started_at

    @property
    def election(self) -> ElectionShell | None:
        return None if self.voting is None else self.voting.election

    @property
    def barred(self) -> str:
        """Why this voter takes no part in elections now; empty when it does, or is none."""
        return "" if self.voting is None else self.voting.electorate.why_barred

    @property
    def difference(self) -> str:
        """What is wrong when voters have different lists; empty when nothing is."""
        return "" if self.voting is None else self.voting.electorate.sentence

    @property
    def has_looked(self) -> bool:
        """It has found others, or has asked everybody it could once."""
        return self.started and (self.bootstrap is None or self.bootstrap.looked)

    @property
    def datagrams_dropped(self) -> Counter[str]:
        return self._port.dropped

    @property
    def exchanges_refused(self) -> Counter[str]:
        return self._exchanges.counts

    # -- life --------------------------------------------------------------------------------

    def answer(self, handlers: Mapping[type[msgspec.Struct], Handler]) -> None:
        """More messages that this node answers; to be said before `start`."""
        self._handlers |= handlers

    async def start(self) -> None:
        """Listen, take an incarnation, look for the cluster. Raises BadInput or OSError."""
        settings, host = self.settings, self._host
        self._started_at = host.clock.now()
        life = await IncarnationFile(host.disk).read() + 1
        self.endpoint = self._make_endpoint(life)
        self.server = Server(self.endpoint, self._greeted)
        self.certificates = CertificateFiles(host.clock, settings, self.endpoint, self.log)
        self.certificates.read()
        address = await self.server.start(settings.bind)
        await self._port.open(address)
        self._exchanges.endpoint = self.endpoint
        self._exchanges.address = address
        await self._start_membership()
        await self._start_election()
        await self._start_discovery()
        if settings.metrics is not None:
            self.page_server = self.pages.server(self, host, settings.metrics)
            self.metrics_address = await self.page_server.start(settings.metrics)
        self.admission.watch(self._resources)
        host.tasks.spawn("heartbeat", self._beat())
        self.started = True
        me = self.membership.me
        self.log.info(
            "ready",
            address=str(Address(*me.tcp)),
            role=me.role,
            datacenter=me.datacenter,
            cluster=settings.cluster,
            env=settings.env,
            incarnation=me.incarnation,
            metrics=str(self.metrics_address or ""),
        )

    def reload(self) -> None:
        """Read our certificate and the list of refused ones again."""
        if self.started:
            self.certificates.reload()

    async def stop(self) -> None:
        """Hand leadership over, tell the others, then be silent; nothing of it is left."""
        self.log.info("leaving")
        if self.election is not None:
            await self.election.stop()
        if self.bootstrap is not None:
            self.bootstrap.stop()
        if self.page_server is not None:
            self.page_server.close()
        await self.membership.leave()
        self.membership.stop()
        self.server.close()
        self.log.info("left", incarnation=self.membership.me.incarnation)

    async def _start_membership(self) -> None:
        self.membership = membership_of(self._host, self.settings, self._port, self._exchanges)
        self.membership.on_change(self._changed)
        self.membership.on_heartbeat(self._heard)
        self.membership.on_seed_silent(self._operator.seed_silent)
        await self.membership.start()
        self._introduce(self.membership.me.incarnation)

    async def _start_election(self) -> None:
        settings = self.settings
        if settings.voters and settings.secret is not None and settings.manager_secret is None:
            self.log.warning(
                "every worker can seal elections: it has the secret that seals them",
                remedy="give the managers alone a second one: --manager-secret-file",
            )
        if settings.voters:
            self.voting = Voting(self._host, self, self._port)
            await self.voting.start()

    async def _start_discovery(self) -> None:
        settings = self.settings
        if not settings.seeds and not settings.names:
            return
        me = Probe(settings.cluster, settings.env, self.membership.me)
        self.bootstrap = Bootstrap(self._host, me, settings.discovery(), settings.nameservers)
        self.bootstrap.on_found.append(
            lambda node: self.membership.join([node.tcp], configured=False)
        )
        self.bootstrap.on_unanswered.append(self._operator.refused)
        self.bootstrap.on_state.append(
            lambda before, now: self.log.debug(
                "looking for the cluster", state=now.value, before=before.value
            )
        )
        self.bootstrap.on_formed.append(self._formed)
        await self.bootstrap.start(self.endpoint)

    # -- making ------------------------------------------------------------------------------

    def _make_endpoint(self, incarnation: int) -> Endpoint:
        settings = self.settings
        own: dict[type[msgspec.Struct], Handler] = {
            AskMembers: self._on_members,
            AskStatus: self._on_status,
            Probe: self._on_probe,
            Said: self._on_said,
        }
        return Endpoint(
            self._host,
            introduction_of(self.settings, incarnation, self._only_gates),
            self._registry,
            own | self._handlers,
            credentials=settings.credentials,
            plaintext="refused" if settings.credentials else settings.plaintext,
            admission=self.admission,
            may_send=senders_to(settings.role),
        )

    def _introduce(self, incarnation: int) -> None:
        self.endpoint.introduction = introduction_of(self.settings, incarnation, self._only_gates)

    def _resources(self) -> Resources:
        """A worker's cores are meant to be full, and admit work by their number."""
        use = self._host.usage()
        cpu = None if self.settings.role == "worker" else use.cpu
        return Resources(cpu=cpu, memory=use.memory, queue=self.queue())

    def spawn_vital(self, name: str, work: Coroutine[Any, Any, None]) -> Task:
        """Work that a node must not go on without: when it dies of an error, the node ends. One
        that lost a loop would go on answering, and others would count on it; one that ends is
        started again by whoever looks after it."""

        async def live_or_end() -> None:
            try:
                await work
            except Exception as error:
                self.failure = self.failure or error
                self.over.set()
                raise  # so that it is reported, as every task that dies

        return self._host.tasks.spawn(name, live_or_end())

    # -- what others ask ---------------------------------------------------------------------

    def _on_members(self, call: Call, ask: AskMembers) -> Members:
        self._asked(call, ask.correlation_id)
        return report.members(self)

    def _on_status(self, call: Call, ask: AskStatus) -> Status:
        self._asked(call, ask.correlation_id)
        return report.status(self, self._host)

    async def _on_said(self, call: Call, message: Said) -> Answered:
        if are_apart(self.settings.role, call.peer.role):
            why = f"a {call.peer.role} is no member beside a {self.settings.role}"
            raise Refused(call.kind.name, why)
        return await self._exchanges.said(call, message)

    def _on_probe(self, call: Call, probe: Probe) -> ProbeAnswer:
        if self.bootstrap is not None:
            answer: ProbeAnswer = self.bootstrap.handlers[Probe](call, probe)
            return answer
        self.check_started(call)
        if probe.node.node_id != call.peer.node_id:
            raise Refused(call.kind.name, f"{call.peer.node_id} probes under another name")
        me = Probe(self.settings.cluster, self.settings.env, self.membership.me)
        if (problem := mismatch(me, probe)) is not None:
            raise Refused(call.kind.name, problem, code=Reason.WRONG_CLUSTER)
        return ProbeAnswer(self.settings.cluster, self.settings.env, self.membership.me)

    def _greeted(self, connection: Connection) -> None:
        session = connection.session
        self.log.debug(
            "greeted",
            peer=session.peer.node_id,
            role=session.peer.role,
            protocol=".".join(map(str, session.protocol)),
            capabilities=sorted(session.capabilities),
            version=session.node_version,
        )

    def _asked(self, call: Call, correlation_id: str) -> None:
        self.check_started(call)
        with logs.correlated(correlation_id=correlation_id):
            self.log.debug("asked", kind=call.kind.name, by=call.peer.node_id)

    def check_started(self, call: Call) -> None:
        if not self.started:
            raise Refused(call.kind.name, "this node is still starting", 0.5, Reason.OVERLOADED)

    # -- what happens ------------------------------------------------------------------------

    def _changed(self, event: Changed) -> None:
        self._operator.member_changed(event)
        if event.change in (Change.REAPED, Change.GIVEN_UP):
            self.vitals.pop(event.node.node_id, None)
        if self.bootstrap is not None:
            self.bootstrap.members_are([node.node_id for node in self.membership.core.active()])
        self._look_at_voters(event.node)

    def _heard(self, event: Heartbeat) -> None:
        try:
            self.vitals[event.node.node_id] = _vitals.decode(event.payload)
        except msgspec.MsgspecError:
            self.counts["heartbeats_malformed"] += 1
        self._look_at_voters(event.node)

    def _formed(self) -> None:
        self.log.info("nobody answers: first node")
        if self.started and self.voting is not None:
            self.voting.refresh()

    def _look_at_voters(self, member: Member) -> None:
        if self.started and self.voting is not None and member.role == self.settings.role:
            self.voting.refresh()

    def _exchange_failed(self, address: Address, error: WireError) -> None:
        self.counts["exchanges_failed"] += 1
        self._operator.refused(address, error)

    async def _beat(self) -> None:
        while True:
            self._refresh()
            await self._host.clock.sleep(BEAT_S)

    def _refresh(self) -> None:
        core = self.membership.core
        if core.me.incarnation != self.endpoint.introduction.identity.incarnation:
            self._introduce(core.me.incarnation)
        if self.voting is not None:
            self.voting.refresh()
        self.tell_vitals()
        self._operator.news_dropped(core.news_dropped)
        self._operator.load(self.admission.load)
        self._operator.forged(self._forged())
        self._operator.turned_away(self.server.turned_away)
        self.certificates.look()

    def tell_vitals(self) -> None:
        """With our next probes; at once when something changed that others must not miss."""
        core = self.membership.core
        vitals = Vitals(core.health_score, 0, None, self.pulse)
        if self.voting is not None:
            vitals = self.voting.vitals(core.health_score, self.pulse)
        if vitals != self._last_vitals:
            self._beats += 1
            self._last_vitals = vitals
            core.set_heartbeat(self._beats, msgspec.msgpack.encode(vitals))

    def _forged(self) -> int:
        refused = self.datagrams_dropped["wrong_secret"]
        refused += self.membership.core.counts["jump_refused"]
        return refused + (0 if self.election is None else self.election.jumps_refused)
