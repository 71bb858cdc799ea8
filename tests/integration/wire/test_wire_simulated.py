"""The same connections in the simulated world: crashes, cuts and pauses in virtual time."""

import asyncio
from collections import Counter

import pytest

from hyperscale.runtime.host import Address, Host
from hyperscale.sim.links import Cut
from hyperscale.sim.world import World
from hyperscale.wire.endpoint import Endpoint, Limits
from hyperscale.wire.errors import WireError
from hyperscale.wire.peer import Peer
from hyperscale.wire.server import Server
from hyperscale.wire.serving import Call
from tests.integration.wire.nodes import Answer, Ask, introduction, registry

PORT = 7400
LIMITS = Limits(request_timeout_s=1.0, keepalive_s=2.0, keepalive_timeout_s=1.0)


async def shout(call: Call, ask: Ask) -> Answer:
    await asyncio.sleep(0.01)
    return Answer(ask.text.upper())


class Story:
    """A manager that answers, a worker that asks ten times a second and notes how it went."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.outcomes: Counter[str] = Counter()
        self.world.add("manager", self._manager)
        self.world.add("worker", self._worker)

    async def _manager(self, host: Host) -> None:
        endpoint = Endpoint(
            host, introduction(), registry(), {Ask: shout}, plaintext="anywhere", limits=LIMITS
        )
        await Server(endpoint).start(Address("", PORT))

    async def _worker(self, host: Host) -> None:
        endpoint = Endpoint(
            host, introduction("worker"), registry(), plaintext="anywhere", limits=LIMITS
        )
        peer = Peer(endpoint, Address(self.world.machines["manager"].ip, PORT))
        number = 0
        while True:
            await host.clock.sleep(0.1)
            number += 1
            try:
                answer = await peer.request(Ask(f"n{number}"), Answer)
                self.outcomes["answered" if answer.text == f"N{number}" else "wrong"] += 1
            except WireError as error:
                self.outcomes[type(error).__name__] += 1

    async def _told(self) -> None:
        world = self.world
        await world.sleep(5)
        world.crash("manager")
        await world.sleep(3)
        world.restart("manager")
        await world.sleep(5)
        cut = world.network.cut(
            Cut("two-way", frozenset({"worker"}), frozenset({"manager"}), both=True)
        )
        await world.sleep(10)
        world.network.heal(cut)
        await world.sleep(5)
        world.pause("manager", 4)
        await world.sleep(10)

    def run(self) -> str:
        try:
            self.world.run(self._told())
            assert self.world.failures == []
            return self.world.trace.digest()
        finally:
            self.world.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_faults_end_in_typed_errors_and_service_returns(seed: int) -> None:
    story = Story(seed)
    story.run()
    assert story.outcomes["answered"] > 100
    assert story.outcomes["wrong"] == 0
    assert set(story.outcomes) - {"answered", "wrong"} <= {
        "DeadlineExceeded",
        "Disconnected",
        "NobodyListens",
    }
    assert story.outcomes.total() > story.outcomes["answered"]


def test_one_seed_one_history() -> None:
    assert Story(7).run() == Story(7).run()
    assert Story(7).run() != Story(8).run()
