"""Simulated workers for the benchmark of a manager: they register, obey, and report on time.

    python benchmarks/cluster_workers.py PORT COUNT SECONDS    (a child of cluster_ingest.py)

Each has a server and a connection of its own and says what a worker says; only the load behind the
numbers is made up. Reports are encoded once and only their numbers change, so that one process
can be a thousand workers beside the manager that is measured. Like a worker, each asks for an
answer once a second and waits for it before the next report, pauses when it is asked to, and tells
again what the manager has not taken. Prints one line of JSON a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import time

import numpy as np

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.identity import Node
from hyperscale.cluster.jobs.records import Part
from hyperscale.metrics.delta import Delta, RequestDelta, RequestKey
from hyperscale.metrics.histogram import Sparse, summarise
from hyperscale.metrics.packed import pack
from hyperscale.nodes.protocol.parts import (
    PARTS,
    AskParts,
    DispatchAnswer,
    DispatchPart,
    EventAnswer,
    HeldParts,
    PartAnswer,
    PartPrepared,
    PartState,
    PartStatus,
    Progress,
    ProgressAnswer,
    Registered,
    RegisterWorker,
    ReportProgress,
    StartPart,
    SteerPart,
    TearDownPart,
    TellEvent,
)
from hyperscale.nodes.worker.reporting import LEVEL_HOLD_BACK
from hyperscale.runtime.host import Address, Stream
from hyperscale.runtime.real import RealHost, run
from hyperscale.wire import handshake
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.envelope import (
    REPLY,
    REQUEST,
    SEND,
    Envelope,
    Verb,
    pack_message,
    pack_plain,
    read_message,
    unpack,
)
from hyperscale.wire.errors import Refusal, WireError
from hyperscale.wire.frames import FrameDecoder
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.messages import decode_plain
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server

REPORT_S = 0.1
REQUESTS_PER_REPORT = 40
TIMEOUT_S = 10.0
# As a worker: between two reports at least, between two answers, and how long it is silent at most.
FLUSH_S = 0.05
CONTACT_S = 1.0
SETTLE_S = 60.0  # to register, be given a part, prepare it and start
ANSWER = PARTS.by_struct[ProgressAnswer]

# Stand-ins that take as many bytes as any value that will be written over them.
_SEQ = 0x7ABCDEF1
_SETTLED = 0x7ABCDEF2
_ELAPSED_S = 1.2345678912345e77
_VERB_AT = 5  # behind length and flags
_BUDGET_MS = int(TIMEOUT_S * 1000)


# A node greets 128 callers of one address at a time, and all of these workers have one.
GREETING = asyncio.Semaphore(64)


class Tally:
    def __init__(self) -> None:
        self.due = self.sent = self.taken = self.again = 0
        self.refused = self.slowed = self.unknown = 0
        self.late_s = 0.0

    def say(self, running: int) -> None:
        print(json.dumps({**vars(self), "running": running, "at": time.time()}), flush=True)
        self.late_s = 0.0


def made_up(middle_s: float, number: int) -> Sparse:
    dice = np.random.default_rng(number)
    found = summarise(dice.lognormal(np.log(middle_s), 0.4, REQUESTS_PER_REPORT))
    assert found is not None
    return found


def a_delta(step: str, number: int) -> Delta:
    """As large as that of a real worker with HTTP requests of half a millisecond."""
    served = RequestDelta(
        RequestKey(step),
        count=REQUESTS_PER_REPORT,
        bytes_in=8_000,
        bytes_out=3_000,
        service=made_up(5e-4, number),
        phases={
            phase: made_up(middle_s, number)
            for phase, middle_s in (("write", 2e-5), ("wait", 4e-4), ("read", 3e-5))
        },
        statuses={200: REQUESTS_PER_REPORT},
    )
    return Delta(
        seq=_SEQ,
        vus=1,
        iteration=made_up(5e-4, number),
        requests=[served],
        lag=summarise(np.array([1e-4])),
        cpu=0.5,
        rss_mb=80.0,
    )


class Reporter:
    """One worker's connection to the manager, and the report that it sends over it."""

    def __init__(self, stream: Stream, decoder: FrameDecoder, frame: bytes, tally: Tally) -> None:
        self._stream = stream
        self._decoder = decoder
        self._frame = bytearray(frame)
        self._seq_at = frame.index(struct.pack("!I", _SEQ))
        self._settled_at = frame.index(struct.pack("!I", _SETTLED))
        self._elapsed_at = frame.index(struct.pack("!d", _ELAPSED_S))
        self._tally = tally
        self._began = time.monotonic()
        self._seq = 0  # told
        self._settled = 0  # and taken
        self._id = 0
        self._waits = False  # for an answer
        self._overdue = False
        self._asked_at = 0.0
        self._quiet_until = 0.0
        self._pause_s = FLUSH_S
        self._pause_until = 0.0

    def due(self) -> None:
        self._tally.due += 1
        if self._waits:
            self._overdue = True
        elif time.monotonic() >= self._pause_until:
            self._send()

    def _send(self) -> None:
        now = time.monotonic()
        frame = self._frame
        self._waits = now >= self._quiet_until
        self._seq += 1
        self._pause_until = now + self._pause_s
        self._tally.sent += 1
        if self._waits:
            self._id += 1
            self._asked_at = now
            struct.pack_into("!BII", frame, _VERB_AT, REQUEST, self._id, _BUDGET_MS)
        else:
            struct.pack_into("!BII", frame, _VERB_AT, SEND, 0, 0)
        struct.pack_into("!I", frame, self._seq_at, self._seq)
        struct.pack_into("!I", frame, self._settled_at, self._settled)
        struct.pack_into("!d", frame, self._elapsed_at, now - self._began)
        self._stream.write(bytes(frame))

    async def listen(self) -> None:
        while data := await self._stream.read(1 << 16):
            self._decoder.feed(data)
            for flags, payload in self._decoder:
                self._heard(flags, unpack(payload))

    def _heard(self, flags: int, envelope: Envelope) -> None:
        if envelope.verb == REPLY:
            self._answered(read_message(ANSWER, flags, envelope.body))
        elif envelope.verb == Verb.REFUSED:
            self._refused(decode_plain(Refusal, envelope.body))
        elif envelope.verb == Verb.PING:
            self._stream.write(pack_plain(Verb.PONG, envelope.id))
            return
        else:
            return
        self._waits = False
        if self._overdue and time.monotonic() >= self._pause_until:
            self._send()
        self._overdue = False

    def _answered(self, answer: ProgressAnswer) -> None:
        if not answer.known:
            self._tally.unknown += 1
            self._seq = self._settled
            return
        (taken,) = answer.taken
        self._tally.taken += taken - self._settled
        self._tally.again += max(0, self._seq - taken)
        self._seq = self._settled = taken
        if answer.level:
            self._tally.slowed += 1
        held_back = answer.level >= LEVEL_HOLD_BACK
        self._pause_s = CONTACT_S if held_back else FLUSH_S + answer.delay_ms / 1000
        self._pause_until = self._asked_at + self._pause_s
        if not held_back:
            self._quiet_until = self._asked_at + CONTACT_S

    def _refused(self, said: Refusal) -> None:
        self._tally.refused += 1
        self._seq = self._settled
        self._pause_until = time.monotonic() + min(said.retry_after_s or REPORT_S, CONTACT_S)


class SimulatedWorker:
    def __init__(self, host: RealHost, number: int, manager: Address, tally: Tally) -> None:
        self.name = f"w{number:04}"
        self.state: PartState = "preparing"
        self.reporter: Reporter | None = None
        self._number = number
        self._host = host
        self._tally = tally
        identity = Identity(
            node_id=self.name,
            incarnation=1,
            role="worker",
            cluster_id="default",
            environment_id="dev",
            datacenter="local",
        )
        self._endpoint = Endpoint(
            host,
            Introduction(identity),
            PARTS,
            {
                DispatchPart: self._dispatched,
                StartPart: self._started,
                SteerPart: lambda call, ask: PartAnswer(known=True, state="running"),
                TearDownPart: lambda call, ask: PartAnswer(known=True, state="ended"),
                AskParts: self._held,
            },
            plaintext="loopback",
        )
        self._server = Server(self._endpoint)
        self._manager = Peer(self._endpoint, manager)
        self._part: Part | None = None
        self._fence: Fence | None = None
        self._step = ""

    async def register(self) -> None:
        address = await self._server.start(Address("127.0.0.1", 0))
        here = (address.host, address.port)
        node = Node(self.name, 1, "worker", "local", here, here)
        ask = RegisterWorker(node=node, total_cores=1, free_cores=1)
        answer = await self._manager.request(ask, Registered, TIMEOUT_S)
        if not answer.accepted:
            raise RuntimeError(f"{self.name} is not taken: {answer.reason}")

    def _dispatched(self, _call: object, ask: DispatchPart) -> DispatchAnswer:
        if self._part is None:
            self._part, self._fence = ask.part, ask.fence
            self._step = ask.facts.steps[0].name
            self._host.tasks.spawn(f"prepare {self.name}", self._prepare())
        return DispatchAnswer(accepted=True)

    async def _prepare(self) -> None:
        told = PartPrepared(part=self._part, fence=self._fence, worker=self.name, seconds=0.1)
        while True:
            try:
                answer = await self._manager.request(TellEvent(event=told), EventAnswer, SETTLE_S)
            except WireError:
                await asyncio.sleep(0.5)
                continue
            if answer.settled:
                return

    def _started(self, _call: object, ask: StartPart) -> PartAnswer:
        if self.state == "preparing":
            self.state = "running"
            self._host.tasks.spawn(f"report {self.name}", self._report())
        return PartAnswer(known=True, state=self.state)

    def _held(self, _call: object, ask: AskParts) -> HeldParts:
        held: tuple[PartStatus, ...] = ()
        if self._part is not None and self._fence is not None:
            held = (PartStatus(part=self._part, fence=self._fence, state=self.state),)
        return HeldParts(worker=self.name, incarnation=1, total_cores=1, free_cores=0, parts=held)

    async def _report(self) -> None:
        """From now on over a connection that costs us nothing but its bytes."""
        self._manager.close()
        decoder = FrameDecoder()
        async with GREETING:
            stream = await self._host.network.connect(
                self._manager.address, self._endpoint.client_tls(self._manager.address)
            )
            await handshake.call(stream, decoder, self._endpoint.introduction)
        self.reporter = Reporter(stream, decoder, self._frame(), self._tally)
        await self.reporter.listen()

    def _frame(self) -> bytes:
        assert self._part is not None
        assert self._fence is not None
        progress = Progress(
            part=self._part,
            fence=self._fence,
            state="running",
            elapsed_s=_ELAPSED_S,
            deltas=(pack(a_delta(self._step, self._number)),),
            settled_seq=_SETTLED,
        )
        report = ReportProgress(
            worker=self.name,
            incarnation=1,
            free_cores=0,
            parts=(progress,),
            cpu_percent=50.0,
            memory_percent=20.0,
        )
        kind = PARTS.of(report)
        return pack_message(REQUEST, 0, _BUDGET_MS, kind, report)


async def work(port: int, count: int, seconds: float) -> None:
    tally = Tally()
    async with RealHost("workers", os.devnull) as host:
        manager = Address("127.0.0.1", port)
        workers = [SimulatedWorker(host, number, manager, tally) for number in range(count)]
        for first in range(0, count, 50):
            await asyncio.gather(*(one.register() for one in workers[first : first + 50]))
        tally.say(0)
        until = host.clock.now() + SETTLE_S
        while any(one.reporter is None for one in workers) and host.clock.now() < until:
            await host.clock.sleep(0.1)
        host.tasks.spawn("reports", report_by_the_clock(host, workers, tally))
        for _ in range(int(seconds)):
            await host.clock.sleep(1.0)
            tally.say(sum(worker.reporter is not None for worker in workers))


async def report_by_the_clock(host: RealHost, workers: list[SimulatedWorker], tally: Tally) -> None:
    """Evenly over the tenth of a second, as a thousand machines would, whatever is answered."""
    step_s = REPORT_S / len(workers)
    due_at, number = host.clock.now(), 0
    while True:
        now = host.clock.now()
        tally.late_s = max(tally.late_s, now - due_at)
        while due_at <= now:
            reporter = workers[number % len(workers)].reporter
            if reporter is not None:
                reporter.due()
            number += 1
            due_at += step_s
        await host.clock.sleep(max(due_at - host.clock.now(), 0.001))


if __name__ == "__main__":
    run(work(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
