"""RetryingSender: whoever is asked by name answers, or nobody does."""

from __future__ import annotations

from hyperscale.nodes.manager.retrying_sender import RetryingSender
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.errors import Disconnected
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.server import Server
from tests.integration.wire.nodes import Answer, Ask, registry


def endpoint(host: SimHost) -> Endpoint:
    identity = Identity(
        node_id=host.name, incarnation=1, role="manager",
        cluster_id="c", environment_id="e", datacenter="d",
    )  # fmt: skip
    handlers = {Ask: lambda call, ask: Answer(host.name)}
    return Endpoint(host, Introduction(identity), registry(), handlers, plaintext="anywhere")


def test_the_answer_of_another_node_at_that_address_does_not_count() -> None:
    said: list[str] = []
    world = World(1)

    async def serving(host: SimHost) -> None:
        await Server(endpoint(host)).start(Address(host.ip, 7_000))
        await host.clock.sleep(60.0)

    async def asking(host: SimHost) -> None:
        await host.clock.sleep(1.0)
        (found,) = await host.network.resolve("m1", 7_000)
        sender = RetryingSender(host, lambda: endpoint(host), "manager")
        for name in ("m2", "m1"):
            sender.at(name, found)
            peer = sender.peer(name)
            assert peer is not None
            try:
                said.append((await peer.request(Ask("?"), Answer, 5.0)).text)
            except Disconnected as error:
                said.append(str(error).split(" is at ")[0] + " is there")

    world.add("m1", serving)
    world.add("m3", asking)

    async def wait() -> None:
        for _ in range(300):
            if len(said) == 2 or world.failures:
                return
            await world.sleep(0.1)

    try:
        world.run(wait())
        assert not world.failures, world.failures[0]
    finally:
        world.close()
    assert said == ["m1 is there", "m1"]
