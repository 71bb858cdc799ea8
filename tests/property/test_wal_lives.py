"""A log through random lives: appends, crashes of any kind, cuts, restarts, compaction."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.ledger.wal import LogFailed, WriteAheadLog
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, SMALL, simulate

lives = st.lists(
    st.tuples(
        st.lists(st.integers(1, 6), max_size=6),  # sizes of groups appended one after another
        st.integers(0, 4),  # records handed over and not waited for
        st.integers(0, 30),  # tenths of a millisecond until the end
        st.sampled_from(["close", "kept", "lost-unsynced", "torn", "sync-error", "full"]),
        st.booleans(),  # compact
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150)
@given(lives)
def test_every_life_finds_what_the_lives_before_were_promised(
    told: list[tuple[list[int], int, int, str, bool]],
) -> None:
    async def story(world: World, host: SimHost) -> None:
        promised: dict[int, bytes] = {}
        tried: set[bytes] = set()
        safe_lsn = 0
        for number, (groups, loose, delay, end, compact) in enumerate(told):
            host = world.host("a")
            log = await WriteAheadLog.open(host, DIRECTORY, SMALL, after_lsn=safe_lsn)
            found = {record.lsn: record.payload async for record in log.read()}
            assert list(found) == sorted(found)
            assert promised.items() <= found.items() | {
                (lsn, payload) for lsn, payload in promised.items() if lsn < log.first_lsn
            }
            assert set(found.values()) <= tried
            promised.update(found)
            for group, size in enumerate(groups):
                payloads = [b"%d.%d.%d" % (number, group, n) * 5 for n in range(size)]
                tried.update(payloads)
                lsns = await log.append_many(payloads)
                assert lsns[0] > max(promised, default=0)
                promised.update(zip(lsns, payloads, strict=True))
            if compact:
                safe_lsn = max(safe_lsn, log.last_lsn - 3)
                await log.compact(safe_lsn)
            await _end(world, host, log, tried, number, loose, delay, end)

    simulate(story)


async def _end(
    world: World,
    host: SimHost,
    log: WriteAheadLog,
    tried: set[bytes],
    number: int,
    loose: int,
    delay: int,
    end: str,
) -> None:
    disk = world.machines["a"].disk
    if end == "sync-error":
        disk.sync_errors = 1.0
    elif end == "full":
        disk.capacity = disk.used_bytes
    payloads = [b"%d loose %d" % (number, n) * 7 for n in range(loose)]
    tried.update(payloads)
    pending = [log.append_nowait(payload) for payload in payloads]
    await asyncio.sleep(delay / 10_000)
    if end in ("close", "sync-error", "full"):
        try:
            await log.close()
        except LogFailed:
            assert end != "close"
        await asyncio.gather(*pending, return_exceptions=True)
        disk.heal()
    else:
        world.crash("a", end)  # type: ignore[arg-type]
        world.restart("a")
        await asyncio.sleep(0)
