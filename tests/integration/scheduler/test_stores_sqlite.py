"""SQLite's own promises: several processes, kill -9 at any moment, layouts of other versions."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.queue.job import Job, JobState
from hyperscale.scheduler.store.sqlite import reader
from hyperscale.scheduler.store.sqlite.ground import SqliteGround
from hyperscale.scheduler.store.sqlite.schema import MIGRATIONS, connect
from hyperscale.scheduler.store.store import Store
from hyperscale.scheduler.store.types import JobFilter, Submission, Submitted, passes
from tests.integration.scheduler.index_checks import check_sqlite
from tests.unit.scheduler.store.cases.harness import (
    NOON,
    at,
    finish,
    job,
    start_one,
    submit,
    submit_all,
)
from tests.unit.scheduler.store.walk import Walk


def process(role: str, path: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.scheduler.store_process", role, path, name],
        stdout=subprocess.PIPE,
        text=True,
    )


def acknowledged(output: str) -> list[str]:
    """Of whole lines only: the last may have been cut off."""
    return [word for line in output.split("\n")[:-1] for word in line.split()[1:]]


def test_a_list_that_takes_long_keeps_no_tick_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(job: Job, job_filter: JobFilter) -> bool:
        begun.set()
        assert go_on.wait(60)
        return passes(job, job_filter)

    async def run() -> None:
        store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        await submit(store, job("a"))
        monkeypatch.setattr(reader, "passes", slowly)
        listing = asyncio.create_task(store.jobs(JobFilter()))
        try:
            assert await asyncio.to_thread(begun.wait, 60)
            async with asyncio.timeout(30):
                assert await store.due_schedules(NOON, 10) == []
                assert await store.job("a") is not None
            assert not listing.done()
        finally:
            go_on.set()
        assert [found.id for found in (await listing).jobs] == ["a"]
        await store.close()

    asyncio.run(run())


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def fill() -> None:
        store = Store(await SqliteGround.open(path))
        await submit_all(store, [Submission(job=job(f"j{i:03}")) for i in range(300)], NOON)
        await store.close()

    asyncio.run(fill())
    workers = [process("work", path, f"w-{i}") for i in range(3)]
    outputs = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    done = [job_id for output in outputs for job_id in acknowledged(output)]
    assert sorted(done) == [f"j{i:03}" for i in range(300)]
    assert check_sqlite(path) == 300


@pytest.mark.parametrize("lines", [1, 7, 40])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "jobs.db"
    submitters = [process("submit", path, f"s{i}") for i in range(2)]
    promised: list[str] = []
    for submitter in submitters:
        assert submitter.stdout is not None
        promised += [word for _ in range(lines) for word in submitter.stdout.readline().split()[1:]]
    for submitter in submitters:
        submitter.kill()
        promised += acknowledged(submitter.communicate(timeout=60)[0])
    assert check_sqlite(path) >= len(promised) > 0

    worker = process("work", path, "w-1")
    assert worker.stdout is not None
    completed = worker.stdout.readline().split()[1:]
    worker.kill()
    completed += acknowledged(worker.communicate(timeout=60)[0])
    check_sqlite(path)

    async def recovered() -> None:
        store = Store(await SqliteGround.open(path))
        for job_id in promised:
            assert await store.job(job_id) is not None
        await store.expire(at(1000))
        second = process("work", path, "w-2")
        second.communicate(timeout=120)  # what it says must be read, or it waits for ever
        assert second.returncode == 0
        for state in (JobState.CLAIMED, JobState.EXECUTING):
            assert (await store.jobs(JobFilter(state=state))).jobs == ()
        for job_id in completed:
            attempts = await store.attempts(job_id)
            assert [attempt.outcome for attempt in attempts].count("COMPLETED") == 1
        await store.close()

    asyncio.run(recovered())


def test_another_process_is_noticed(tmp_path: Path) -> None:
    async def two() -> None:
        mine = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        theirs = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        mark = mine.mark()
        while await mine.changed(mark, 0.1):
            mark = mine.mark()
        waiting = asyncio.ensure_future(mine.changed(mark, 30))
        await submit(theirs, job("a"))
        assert await waiting
        await mine.close()
        await theirs.close()

    asyncio.run(two())


def test_walkers_in_each_others_way_leave_sound_indexes(tmp_path: Path) -> None:
    async def crowd() -> None:
        stores = [Store(await SqliteGround.open(tmp_path / "jobs.db")) for _ in range(3)]
        walks = [Walk(store, seed, f"{seed}-") for seed, store in enumerate(stores)]
        await asyncio.gather(*(walk.run(80) for walk in walks))
        for store in stores:
            await store.close()

    asyncio.run(crowd())
    assert check_sqlite(tmp_path / "jobs.db") > 0


def test_a_fault_in_one_step_fails_nobody_else(tmp_path: Path) -> None:
    async def faulty() -> None:
        store = Store(await SqliteGround.open(tmp_path / "jobs.db"))

        def broken(records: object) -> None:
            raise ZeroDivisionError

        outcomes = await asyncio.gather(
            store.submit(Submission(job=job("a")), NOON),
            store._ground.write([broken]),
            store.submit(Submission(job=job("b")), NOON),
            return_exceptions=True,
        )
        assert isinstance(outcomes[1], ZeroDivisionError)
        assert (await store.counts()).ready == 2
        await store.close()
        with pytest.raises(StoreUnavailable):
            await store.submit(Submission(job=job("c")), NOON)

    asyncio.run(faulty())
    assert check_sqlite(tmp_path / "jobs.db") == 2


def test_one_batch_knows_old_new_and_repeated_ids_apart(tmp_path: Path) -> None:
    async def mixed() -> None:
        path = tmp_path / "jobs.db"
        store = Store(await SqliteGround.open(path))
        old = [Submission(job=job(f"old-{i:03}")) for i in range(70)]
        await submit_all(store, old, NOON)
        await store.close()
        store = Store(await SqliteGround.open(path))  # which remembers none of them
        new = [Submission(job=job(f"new-{i:03}")) for i in range(70)]
        outcomes = await submit_all(store, [*new, *old, *new], NOON)
        created = [isinstance(one, Submitted) and one.created for one in outcomes]
        assert created == [True] * 70 + [False] * 140
        await store.close()

    asyncio.run(mixed())
    assert check_sqlite(tmp_path / "jobs.db") == 140


def test_more_callers_than_may_wait_are_all_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperscale.scheduler.store.sqlite.writer.REQUESTS_MAX", 3)

    async def crowd() -> None:
        store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        callers = [
            asyncio.create_task(store.submit(Submission(job=job(f"j{i:02}")), NOON))
            for i in range(50)
        ]
        await asyncio.sleep(0)
        callers[0].cancel()  # waits for its answer
        callers[-1].cancel()  # waits for room
        outcomes = await asyncio.gather(*callers, return_exceptions=True)
        assert sum(isinstance(one, Submitted) for one in outcomes) == 48
        await store.close()

    asyncio.run(crowd())


def test_a_program_may_end_without_closing_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    began, ended = threading.Event(), threading.Event()

    def slow(records: object) -> None:
        began.set()
        assert ended.wait(30)

    async def leave() -> SqliteGround:
        ground = await SqliteGround.open(tmp_path / "jobs.db")
        writing = asyncio.ensure_future(ground.write([slow]))
        assert await asyncio.to_thread(began.wait, 30)
        writing.cancel()
        return ground

    ground = asyncio.run(leave())
    ended.set()
    ground._writer._queue.put(None)
    ground._writer._thread.join(30)
    assert not ground._writer._thread.is_alive()
    assert failures == []
    for connection in ground._connections:
        connection.close()


def test_a_locked_file_is_unavailable_then_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperscale.scheduler.store.sqlite.schema.BUSY_TIMEOUT_S", 0.05)

    async def locked() -> None:
        store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
        other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await store.submit(Submission(job=job("a")), NOON)
        other.execute("ROLLBACK")
        other.close()
        await submit(store, job("a"))
        await store.close()

    asyncio.run(locked())


def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    async def lives() -> None:
        for life in range(3):
            store = Store(await SqliteGround.open(tmp_path / "jobs.db"))
            await submit(store, job(f"j{life}", at(life)))
            held = await start_one(store, now=at(life))
            assert held.token > life
            await finish(store, held)
            assert (await store.counts()).states[JobState.COMPLETED] == life + 1
            await store.close()

    asyncio.run(lives())


def test_the_file_is_durable_and_marked(tmp_path: Path) -> None:
    async def look() -> None:
        ground = await SqliteGround.open(tmp_path / "jobs.db")
        for connection in ground._connections:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        await ground.close()

    asyncio.run(look())


def test_a_newer_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(BadInput, match="newer"):
        asyncio.run(SqliteGround.open(path))


def test_an_older_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 32, 3))
    with pytest.raises(BadInput, match=r"needs SQLite 3\.33"):
        asyncio.run(SqliteGround.open(tmp_path / "jobs.db"))
    assert not (tmp_path / "jobs.db").exists()


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, just a long enough line of text\n" * 50)
    for path in (tmp_path / "text", tmp_path / "missing" / "jobs.db"):
        with pytest.raises(BadInput, match="cannot be opened"):
            asyncio.run(SqliteGround.open(path))


def test_many_may_open_a_new_file_at_the_same_moment(tmp_path: Path) -> None:
    """SQLite tells some of them at once that it is locked: while it becomes a file with a log it
    waits for nobody, whatever the timeout."""
    together = threading.Barrier(8)

    def opened(path: Path) -> str:
        together.wait()
        with contextlib.closing(connect(path)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            return str(mode)

    with ThreadPoolExecutor(8) as pool:
        for number in range(40):
            assert set(pool.map(opened, [tmp_path / f"{number}.db"] * 8)) == {"wal"}
