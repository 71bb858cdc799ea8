"""Logs on simulated disks: write one, break its bytes, and see what a start makes of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hyperscale.errors import HyperscaleError
from hyperscale.ledger.wal import Record, Recovered, WalSettings, WriteAheadLog
from hyperscale.sim.disk import DirectoryImage
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World

T = TypeVar("T")
DIRECTORY = "wal"
SMALL = WalSettings(segment_bytes_max=400, read_bytes=64, batch_entries_max=4)
Files = dict[str, bytes]


async def _idle(host: SimHost) -> None:
    return None


def simulate(
    story: Callable[[World, SimHost], Coroutine[Any, Any, T]], files: Files | None = None
) -> T:
    """Run a story on one machine whose disk holds `files` durably."""
    world = World(1)
    machine = world.add("a", _idle)
    put(world, files or {})
    assert machine.host is not None
    try:
        return world.run(story(world, machine.host))
    finally:
        failures = world.failures
        world.close()
        assert failures == []


def put(world: World, files: Files) -> None:
    image = world.machines["a"].disk
    image.make_directory(DIRECTORY)
    for name, data in files.items():
        file = image.create(f"{DIRECTORY}/{name}")
        file.data[:] = data
        file.sync(len(data))
    image.sync_directory("")
    image.sync_directory(DIRECTORY)


def files_of(world: World) -> Files:
    image = world.machines["a"].disk
    directory = image.find(DIRECTORY)
    assert isinstance(directory, DirectoryImage)
    return {name: bytes(image.file(f"{DIRECTORY}/{name}").data) for name in directory.entries}


def write(
    work: Callable[[WriteAheadLog], Awaitable[Any]],
    settings: WalSettings = SMALL,
    close: bool = True,
    files: Files | None = None,
) -> Files:
    """The bytes that some work leaves; without `close` as after the kill of the process."""

    async def story(world: World, host: SimHost) -> Files:
        log = await WriteAheadLog.open(host, DIRECTORY, settings)
        await work(log)
        if close:
            await log.close()
        left = files_of(world)
        await host.tasks.stop()
        return left

    return simulate(story, files)


@dataclass
class Start:
    """What became of a start."""

    records: list[Record] = field(default_factory=list)
    recovered: Recovered | None = None
    error: HyperscaleError | None = None
    files: Files = field(default_factory=dict)

    @property
    def payloads(self) -> list[bytes]:
        return [record.payload for record in self.records]

    @property
    def lsns(self) -> list[int]:
        return [record.lsn for record in self.records]


def start(files: Files, settings: WalSettings = SMALL, after_lsn: int = 0) -> Start:
    """Open the log in these bytes as a new process would, and close it again."""

    async def story(world: World, host: SimHost) -> Start:
        found = Start()
        try:
            log = await WriteAheadLog.open(
                host, DIRECTORY, settings, after_lsn=after_lsn, deliver=found.records.extend
            )
        except HyperscaleError as error:
            found.error = error
        else:
            found.recovered = log.recovered
            again = [record async for record in log.read(after_lsn + 1)]
            assert again == found.records, "what is read is what was recovered"
            await log.close()
        found.files = files_of(world)
        return found

    return simulate(story, files)
