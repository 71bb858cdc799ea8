"""The smallest world worth breaking: nodes that count on disk and ping each other.

It exists to test the simulator itself: every fault class touches it, and each planted bug is one
that real systems have had.
"""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from typing import ClassVar

from hyperscale.runtime.host import Address, Host
from hyperscale.sim.checkers import Checker
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.world import World

PORT = 7000
COUNT_EVERY_S = 0.2
DIRECTORY, PATH, NEW_PATH = "journal", "journal/count", "journal/count.new"
RECORD = struct.Struct(">QI")


class DurableCounter(Checker):
    """What was said to be counted is there after any crash, and nothing that was never written."""

    def __init__(self) -> None:
        self._tried: dict[str, int] = defaultdict(int)
        self._counted: dict[str, int] = defaultdict(int)

    def on_counting(self, at: float, node: str, value: int) -> None:
        self._tried[node] = max(self._tried[node], value)

    def on_counted(self, at: float, node: str, value: int) -> None:
        self._counted[node] = value

    def on_recovered(self, at: float, node: str, value: int) -> None:
        if value < self._counted[node]:
            self.fail(f"{node} had counted to {self._counted[node]} and came back with {value}")
        if value > self._tried[node]:
            self.fail(f"{node} came back with {value}, which it never wrote")


class HonestEchoes(Checker):
    """Every answer belongs to a question that its receiver has asked."""

    def __init__(self) -> None:
        self._asked: dict[str, set[str]] = defaultdict(set)

    def on_pinged(self, at: float, node: str, question: str) -> None:
        self._asked[node].add(question)

    def on_answered(self, at: float, node: str, by: str, question: str) -> None:
        if question not in self._asked[node]:
            self.fail(f"{node} got an answer from {by} to {question}, which it never asked")


class Echo(Scenario):
    name = "echo"
    summary = "nodes count on disk and ping each other; tests the simulator itself"
    safety_s = 30.0
    liveness_s = 30.0
    core = "majority"
    planted_bugs: ClassVar = {
        "count-before-sync": "DurableCounter",
        "forget-directory": "DurableCounter",
        "trust-torn-tail": "DurableCounter",
        "sync-again": "DurableCounter",
        "trust-page-cache": "DurableCounter",
        "wrong-answer": "HonestEchoes",
    }

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        self.heard: dict[tuple[str, str], float] = {}

    async def setup(self, world: World) -> None:
        for name in self.node_names():
            world.add(name, lambda host: EchoNode(self, world, host).run())

    def checkers(self) -> list[Checker]:
        return [DurableCounter(), HonestEchoes()]

    def goal(self, world: World) -> str:
        deaf = [
            f"{node} has not heard {peer}"
            for node in world.core
            for peer in world.core
            if node != peer and self.heard.get((node, peer), -1.0) < world.healed_at
        ]
        return "; ".join(deaf[:3])

    def describe(self, data: bytes) -> str:
        return data.decode(errors="replace")


class EchoNode:
    """The code under test: it knows a host, and reports what it does."""

    def __init__(self, scenario: Echo, world: World, host: SimHost) -> None:
        self._scenario = scenario
        self._bug = scenario.planted_bug
        self._world = world
        self._host: Host = host
        self._life = host.generation
        self._peers: dict[Address, str] = {}

    async def run(self) -> None:
        self._peers = {
            Address(machine.ip, PORT): machine.name
            for machine in self._world.machines.values()
            if machine.name != self._host.name
        }
        value = await self._recover()
        self._file = await self._host.disk.open(PATH)
        self._port = await self._host.network.bind(Address("", PORT), self._on_datagram)
        while True:
            await self._host.clock.sleep(COUNT_EVERY_S)
            value += 1
            await self._count(value)
            self._ping(value)

    async def _recover(self) -> int:
        """The last good record is written to a new file: after a failed sync the old one may
        read well from the page cache and still not be on the platter."""
        disk = self._host.disk
        await disk.make_directory(DIRECTORY)
        value = 0
        if "count" in await disk.list(DIRECTORY):
            value = self._last_value(await disk.read(PATH))
        if value == 0 or self._bug != "trust-page-cache":
            await self._write_anew(value)
        if self._bug != "forget-directory":
            await disk.sync_directory(DIRECTORY)
            await disk.sync_directory("")
        self._world.observe("recovered", node=self._host.name, value=value)
        return value

    async def _write_anew(self, value: int) -> None:
        disk = self._host.disk
        if "count.new" in await disk.list(DIRECTORY):
            await disk.remove(NEW_PATH)
        file = await disk.open(NEW_PATH)
        await file.append_and_sync(RECORD.pack(value, _check(value)))
        await file.close()
        await disk.rename(NEW_PATH, PATH)

    def _last_value(self, data: bytes) -> int:
        value = 0
        for offset in range(0, len(data) - RECORD.size + 1, RECORD.size):
            found, check = RECORD.unpack_from(data, offset)
            if check != _check(found) and self._bug != "trust-torn-tail":
                break
            value = found
        return value

    async def _count(self, value: int) -> None:
        name, observe = self._host.name, self._world.observe
        observe("counting", node=name, value=value)
        record = RECORD.pack(value, _check(value))
        if self._bug == "count-before-sync":
            await self._file.append(record)
            observe("counted", node=name, value=value)
            await self._file.sync()
            return
        await self._file.append(record)
        try:
            await self._file.sync()
        except OSError:
            if self._bug != "sync-again":
                raise
            self._file = await self._host.disk.open(PATH)
            await self._file.sync()
        observe("counted", node=name, value=value)

    def _ping(self, value: int) -> None:
        for address in self._peers:
            question = f"{self._host.name}.{self._life}.{value}"
            self._world.observe("pinged", node=self._host.name, question=question)
            self._port.send(address, f"ping {question}".encode())

    def _on_datagram(self, data: bytes, sender: Address) -> None:
        verb, question = data.decode().split()
        if verb == "ping":
            wrong = "?" if self._bug == "wrong-answer" else ""
            self._port.send(sender, f"pong {question}{wrong}".encode())
            return
        me, peer = self._host.name, self._peers[sender]
        self._scenario.heard[me, peer] = self._world.now
        self._world.observe("answered", node=me, by=peer, question=question)


def _check(value: int) -> int:
    return zlib.crc32(value.to_bytes(8, "big"))
