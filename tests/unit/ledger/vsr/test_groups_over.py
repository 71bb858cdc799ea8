"""Groups that are over leave nothing: not in memory, not on disk, and nobody brings them back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from hyperscale.ledger.checkpoints import Policy
from hyperscale.ledger.vsr import Entry, Groups, VsrSettings
from hyperscale.ledger.wal import WalSettings
from hyperscale.runtime.host import Task
from hyperscale.sim.world import World
from tests.unit.sim.worlds import finish, world_of

NAMES = ("a", "b", "c")
SETTINGS = VsrSettings(lease_s=1.0, heartbeat_s=0.25, retry_s=0.2, view_change_s=1.0)
WAL = WalSettings(segment_bytes_max=4_000)
PAYLOAD = b"x" * 400


class Nodes:
    def __init__(self, world: World) -> None:
        self.world = world
        self.away: set[str] = set()
        self.nodes: dict[str, Groups] = {}
        self.closed: dict[str, list[str]] = {name: [] for name in NAMES}
        self.applied: dict[str, list[Entry]] = {name: [] for name in NAMES}
        self._running: dict[str, Task] = {}

    async def start(self, name: str) -> None:
        host = self.world.host(name)
        self.applied[name] = []
        groups = self.nodes[name] = await Groups.open(
            *(host, "ledger", name, partial(self._send, name), partial(self._apply, name)),
            *(SETTINGS, WAL),
            closed=self.closed[name].append,
            policy=Policy(records=40, seconds=1e9),
        )
        self._running[name] = host.tasks.spawn("groups", groups.run())

    async def stop(self, name: str) -> None:
        self._running.pop(name).cancel()
        await self.nodes.pop(name).close()

    def disk_bytes(self, name: str) -> int:
        disk = self.world.machines[name].disk
        return sum(len(disk.durable(path) or b"") for path, _ in disk.files())

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(600):
            if holds():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("it never came true")

    async def live(self, group: str, closes: bool = True) -> None:
        for name in sorted(self.nodes.keys() - self.away):
            self.nodes[name].create(group, NAMES)
        await self.nodes["a"].append(group, "one", PAYLOAD, 5.0)
        if closes:
            await self.nodes["a"].append(group, "over", b"", 5.0, closes=True)

    def _apply(self, name: str, group: str, entry: Entry) -> None:
        self.applied[name].append(entry)

    def _send(self, sender: str, to: str, data: bytes) -> None:
        if not {sender, to} & self.away:
            asyncio.get_running_loop().call_later(0.01, self._deliver, sender, to, data)

    def _deliver(self, sender: str, to: str, data: bytes) -> None:
        if to in self.nodes and not {sender, to} & self.away:
            self.nodes[to].receive(sender, data)


def play(story: Callable[[Nodes], Coroutine[Any, Any, None]]) -> None:
    world = world_of(*NAMES)
    finish(world, story(Nodes(world)))


def is_empty(groups: Groups) -> bool:
    return not groups.node.replicas and not groups.node.graves.untold


def test_nothing_grows_with_the_groups_there_were() -> None:
    async def story(nodes: Nodes) -> None:
        for name in NAMES:
            await nodes.start(name)
        sizes = []
        for at in range(3):
            for number in range(60):
                await nodes.live(f"g{at}-{number}")
            await nodes.until(lambda: all(map(is_empty, nodes.nodes.values())))
            sizes.append(max(map(nodes.disk_bytes, NAMES)))
        assert sizes[2] <= sizes[1] + 2 * WAL.segment_bytes_max
        assert max(sizes) < 60 * len(PAYLOAD) * 2
        assert [len(told) for told in nodes.closed.values()] == [180] * 3

    play(story)


def test_who_was_away_hears_of_the_end_and_the_others_remember_it_until_then() -> None:
    async def story(nodes: Nodes) -> None:
        for name in NAMES:
            await nodes.start(name)
        await nodes.live("g", closes=False)
        await nodes.until(lambda: len(nodes.applied["c"]) == 1)
        nodes.away = {"c"}
        await nodes.live("g")
        await asyncio.sleep(30)
        assert list(nodes.nodes["a"].node.graves.untold["g"]) == ["c"]
        await nodes.stop("a")  # and also over a restart
        await nodes.start("a")
        nodes.away = set()
        await nodes.until(lambda: all(map(is_empty, nodes.nodes.values())))
        assert nodes.closed["c"] == ["g"]

    play(story)


def test_a_checkpoint_and_the_log_behind_it_are_what_there_was() -> None:
    async def story(nodes: Nodes) -> None:
        for name in NAMES:
            await nodes.start(name)
        for number in range(80):
            await nodes.live(f"g{number}", closes=number % 4 > 0)
        await nodes.until(
            lambda: [len(one.node.replicas) for one in nodes.nodes.values()] == [20] * 3
        )
        before = {group: one.state.log for group, one in nodes.nodes["b"].node.replicas.items()}
        for name in NAMES:
            await nodes.stop(name)
        for name in NAMES:
            await nodes.start(name)
        after = {group: one.state.log for group, one in nodes.nodes["b"].node.replicas.items()}
        assert after == before
        await nodes.until(lambda: len(nodes.applied["b"]) == 20)

    play(story)


def test_less_is_kept_of_what_was_condensed_also_on_disk() -> None:
    async def story(nodes: Nodes) -> None:
        for name in NAMES:
            await nodes.start(name)
        for number in range(60):
            await nodes.live(f"g{number}", closes=False)
            await asyncio.sleep(1.0)
            for groups in nodes.nodes.values():
                groups.condense(f"g{number}", lambda payload: payload[:4])
        await nodes.stop("a")
        await nodes.start("a")
        kept = [one.state.log[0].payload for one in nodes.nodes["a"].node.replicas.values()]
        assert set(kept[:30]) == {PAYLOAD[:4]}

    play(story)
