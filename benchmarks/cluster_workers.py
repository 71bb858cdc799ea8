"""Simulated workers for the benchmark of a manager: they register, obey, and report on time.

    python benchmarks/cluster_workers.py PORT COUNT SECONDS      (a child of benchmarks/cluster.py)

Each has a connection and a server of its own and speaks the real protocol; only the load behind
the numbers is made up. Prints one line of JSON a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.identity import Node
from hyperscale.cluster.jobs.records import Part
from hyperscale.metrics.delta import Delta, StepDelta
from hyperscale.metrics.histogram import Histogram
from hyperscale.nodes.protocol.parts import (
    PARTS,
    AskParts,
    DispatchAnswer,
    DispatchPart,
    EventAnswer,
    HeldParts,
    PartAnswer,
    PartEnd,
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
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import WireError
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server

REPORT_S = 0.1
REQUESTS_PER_REPORT = 40
TIMEOUT_S = 10.0


class Tally:
    def __init__(self) -> None:
        self.registered = self.sent = self.answered = self.failed = self.held_back = 0
        self.late_s = 0.0
        self.why = ""

    def say(self, running: int) -> None:
        print(json.dumps({**vars(self), "running": running, "at": time.time()}), flush=True)
        self.late_s = 0.0


class SimulatedWorker:
    def __init__(self, host: RealHost, number: int, manager: Address, tally: Tally) -> None:
        self.name = f"w{number:04}"
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
        self.state: PartState = "preparing"
        self._seq = 0
        self._began = 0.0
        latency = Histogram()
        for step in range(REQUESTS_PER_REPORT):
            latency.record(0.0004 + 0.00002 * (step % 9))
        self._sparse = latency.sparse()

    async def register(self) -> None:
        address = await self._server.start(Address("127.0.0.1", 0))
        here = (address.host, address.port)
        node = Node(self.name, 1, "worker", "local", here, here)
        ask = RegisterWorker(node=node, total_cores=1, free_cores=1)
        answer = await self._manager.request(ask, Registered, TIMEOUT_S)
        if not answer.accepted:
            raise RuntimeError(f"{self.name} is not taken: {answer.reason}")
        self._tally.registered += 1

    def _dispatched(self, _call: object, ask: DispatchPart) -> DispatchAnswer:
        if self._part is None:
            self._part, self._fence = ask.part, ask.fence
            self._host.tasks.spawn(f"prepare {self.name}", self._prepare(ask.facts.steps[0].name))
        return DispatchAnswer(accepted=True)

    async def _prepare(self, step: str) -> None:
        self._step = step
        await self._tell(PartPrepared(**self._labels(), seconds=0.1))

    def _started(self, _call: object, ask: StartPart) -> PartAnswer:
        if self.state == "preparing":
            self.state, self._began = "running", self._host.clock.now()
        return PartAnswer(known=True, state=self.state)

    def _held(self, _call: object, ask: AskParts) -> HeldParts:
        held: tuple[PartStatus, ...] = ()
        if self._part is not None and self._fence is not None:
            held = (PartStatus(part=self._part, fence=self._fence, state=self.state),)
        return HeldParts(worker=self.name, incarnation=1, total_cores=1, free_cores=0, parts=held)

    def _labels(self) -> dict[str, object]:
        return {"part": self._part, "fence": self._fence, "worker": self.name}

    async def _tell(self, event: PartPrepared | PartEnd) -> None:
        while True:
            try:
                answer = await self._manager.request(TellEvent(event=event), EventAnswer, 60.0)
            except WireError:
                await asyncio.sleep(0.5)
                continue
            if answer.settled:
                return

    async def report(self, first_at: float) -> None:
        """On a schedule of its own: a late answer makes the next report late, not fewer."""
        clock, due = self._host.clock, first_at
        while True:
            now = clock.now()
            if now < due:
                await clock.sleep(due - now)
            self._tally.late_s = max(self._tally.late_s, clock.now() - due)
            due += REPORT_S
            parts: tuple[Progress, ...] = ()
            if self._part is not None and self._fence is not None:
                parts = (self._progress(self._part, self._fence),)
            free = 0 if parts else 1
            report = ReportProgress(worker=self.name, incarnation=1, free_cores=free, parts=parts)
            self._tally.sent += 1
            try:
                answer = await self._manager.request(report, ProgressAnswer, TIMEOUT_S)
            except WireError as error:
                self._tally.failed += 1
                self._tally.why = str(error)
                # What was not taken is told again, as a worker does.
                self._seq -= sum(len(part.deltas) for part in parts)
                continue
            self._tally.answered += 1
            self._tally.held_back += answer.delay_ms > 0

    def _progress(self, part: Part, fence: Fence) -> Progress:
        if self.state != "running":
            return Progress(part=part, fence=fence, state=self.state, elapsed_s=0.0)
        self._seq += 1
        step = StepDelta(
            name=self._step,
            count=REQUESTS_PER_REPORT,
            bytes_in=8_000,
            bytes_out=3_000,
            service=self._sparse,
            statuses={200: REQUESTS_PER_REPORT},
        )
        delta = Delta(seq=self._seq, vus=1, iteration=self._sparse, steps=[step], cpu=0.5)
        elapsed_s = self._host.clock.now() - self._began
        return Progress(
            part=part, fence=fence, state="running", elapsed_s=elapsed_s, deltas=(delta,)
        )


async def work(port: int, count: int, seconds: float) -> None:
    tally = Tally()
    async with RealHost("workers", os.devnull) as host:
        manager = Address("127.0.0.1", port)
        workers = [SimulatedWorker(host, number, manager, tally) for number in range(count)]
        for first in range(0, count, 50):
            await asyncio.gather(*(one.register() for one in workers[first : first + 50]))
        tally.say(0)
        now = host.clock.now()
        for number, worker in enumerate(workers):
            first_at = now + REPORT_S * number / count
            host.tasks.spawn(f"report {worker.name}", worker.report(first_at))
        until = now + seconds
        while host.clock.now() < until:
            await host.clock.sleep(1.0)
            tally.say(sum(worker.state == "running" for worker in workers))


if __name__ == "__main__":
    run(work(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
