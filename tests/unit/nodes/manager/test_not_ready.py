"""What a manager says while it, or its leader, cannot answer: a refusal that names a time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hyperscale.cluster.identity import Node
from hyperscale.nodes.manager.leadership import passing_on
from hyperscale.nodes.manager.manager import Manager
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.protocol.parts import RegisterWorker
from hyperscale.runtime.host import Address
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from hyperscale.wire.errors import DeadlineExceeded, Disconnected, Refused, RemoteFailed


def _call(kind: str) -> Any:
    peer = SimpleNamespace(role="worker", node_id="w1")
    return SimpleNamespace(peer=peer, kind=SimpleNamespace(name=kind))


@pytest.mark.parametrize("error", [Disconnected("gone"), DeadlineExceeded("silent")])
def test_a_leader_that_is_gone_is_a_reason_to_ask_again(error: Exception) -> None:
    with pytest.raises(Refused) as refused, passing_on(_call("watch.job")):
        raise error
    assert refused.value.retry_after_s


def test_what_the_leader_could_not_do_stays_its_failure() -> None:
    with pytest.raises(RemoteFailed), passing_on(_call("watch.job")):
        raise RemoteFailed("watch.job", "KeyError")


def test_a_manager_that_is_still_starting_takes_nobody_in() -> None:
    world = World(1)
    refusals: list[Refused] = []

    async def main(host: SimHost) -> None:
        here = Address(host.ip, 7_000)
        node = NodeSettings(
            id="m1", bind=here, data=Path("unused"), role="manager", voters=("m1",),
            plaintext="anywhere",
        )  # fmt: skip
        manager = Manager(host, ManagerSettings(node=node))
        worker = Node("w1", 1, "worker", "local", ("10.0.0.9", 7_000), ("10.0.0.9", 7_000))
        try:
            manager.worker_api.register(
                _call("register.worker"), RegisterWorker(node=worker, total_cores=1, free_cores=1)
            )
        except Refused as refused:
            refusals.append(refused)

    world.add("m1", main)
    try:
        world.run(world.sleep(1.0))
    finally:
        world.close()
    assert world.failures == []
    assert [one.retry_after_s is not None for one in refusals] == [True]
