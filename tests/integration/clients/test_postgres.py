"""PostgreSQL: a real server, and servers that keep to nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome

from . import postgres_server
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import free_port, user


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    if not postgres_server.found():
        pytest.skip("needs PostgreSQL: the wheel pgserver or the package postgresql")
    chosen = free_port()
    with postgres_server.postgres_server(chosen):
        yield chosen


@pytest.fixture
def url(port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"


async def runs(vu: Any, url: str, statement: str) -> None:
    """Until the server says that it does, and no longer than a while."""
    sql = "select count(*) from pg_stat_activity where state = 'active' and query = $1"
    async with asyncio.timeout(10):
        while not (await vu.postgres.query(url, sql, statement)).value:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_queries_statements_and_copies(run: Run, url: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            pg = vu.postgres
            assert (await pg.execute(url, "drop table if exists items")).told == "DROP TABLE"
            assert (await pg.execute(url, "create table items (id int, name text)")).ok
            put = await pg.execute(url, "insert into items values ($1, $2), (2, 'b')", 1, "a")
            assert (put.told, put.row_count) == ("INSERT 0 2", 2)
            sql = "select id, name from items where id >= $1 order by id"
            assert (await pg.prepare(url, sql)).ok
            got = await pg.query(url, sql, 1)
            assert (got.row_count, got.value, got.rows[1]["name"]) == (2, 1, "b")
            copied = await pg.copy_in(url, "items", ((n, "c") for n in range(500)))
            assert (copied.told, copied.row_count) == ("COPY 500", 500)
            out = await pg.copy_out(url, "select id from items where id > $1", 496)
            assert sorted(out.text().split()) == ["497", "498", "499"]
            many = await asyncio.gather(*(pg.query(url, "select $1::int", n) for n in range(9)))
            assert [one.value for one in many] == list(range(9))
            assert scope.connects == 9, "calls at the same time have connections of their own"
            assert {one[0] for one in scope.noted} == {"postgres"}
            assert [one[1] for one in scope.noted].count("QUERY") == 10

    run(go())


def test_transactions(run: Run, url: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            pg = vu.postgres
            await pg.execute(url, "drop table if exists t; create table t (n int unique)")
            async with pg.transaction(url) as tx:
                await pg.execute(tx, "insert into t values ($1)", 1)
                assert (await pg.query(url, "select count(*) from t")).value == 0
            assert (await pg.query(url, "select count(*) from t")).value == 1
            async with pg.transaction(url) as tx:
                await pg.execute(tx, "insert into t values ($1)", 2)
                twice = await pg.execute(tx, "insert into t values ($1)", 1)
                assert (twice.outcome, twice.code) == (Outcome.STATUS, "23505")

            async def raising() -> None:
                async with pg.transaction(url) as tx:
                    await pg.execute(tx, "insert into t values ($1)", 3)
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await raising()
            assert (await pg.query(url, "select count(*) from t")).value == 1
            names = [one[2] for one in scope.noted]
            assert (names.count("begin"), names.count("commit"), names.count("rollback")) == (
                3,
                1,
                2,
            )
            assert scope.connects == 2

    run(go())


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("select * from no_such_table", "42P01"),
        ("selec 1", "42601"),
        ("select 1/0", "22012"),
        ("select 'x'::int", "22P02"),
    ],
)
def test_errors_are_the_servers_own_words(run: Run, url: str, sql: str, state: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            got = await vu.postgres.query(url, sql)
            assert (got.outcome, got.code) == (Outcome.STATUS, state)
            assert got.error.startswith(state)
            assert [result for result, _ in scope.failures] == [got]
            assert (await vu.postgres.query(url, "select 1")).value == 1
            assert scope.connects == 1
            with pytest.raises(CallFailed):
                assert got.value

    run(go())


@pytest.mark.parametrize(
    ("login", "state"),
    [("guarded:wrong@", "28P01"), ("nobody@", "28000"), ("postgres@", "3D000")],
)
def test_wrong_credentials_and_databases(run: Run, url: str, login: str, state: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            await vu.postgres.execute(
                url, "drop role if exists guarded; create role guarded login password 'right'"
            )
            where = url.replace("postgres@", login).removesuffix("postgres") + "none"
            got = await vu.postgres.query(where, "select 1")
            assert (got.outcome, got.error[:5]) == (Outcome.STATUS, state)
            assert scope.failures == [(got, False)]
            right = url.replace("postgres@", "guarded:right@")
            assert (await vu.postgres.query(right, "select 1")).ok

    run(go())


def test_slow_cancelled_and_cut_off(run: Run, url: str) -> None:
    async def go() -> None:
        async with user() as (vu, _, made):
            pg = vu.postgres
            late = await pg.query(url, "select pg_sleep(30)", timeout=0.2)
            assert late.outcome is Outcome.TIMEOUT
            assert (await pg.query(url, "select 1")).ok
            call = asyncio.ensure_future(pg.query(url, "select pg_sleep(31)"))
            await runs(vu, url, "select pg_sleep(31)")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            victim = asyncio.ensure_future(pg.query(url, "select pg_sleep(32)"))
            await runs(vu, url, "select pg_sleep(32)")
            await pg.query(
                url,
                "select pg_terminate_backend(pid) from pg_stat_activity where query like $1",
                "select pg_sleep(32)%",
            )
            killed = await victim
            assert killed.outcome is Outcome.RESET
            assert "terminating connection" in killed.error
            assert (await pg.query(url, "select 1")).ok
            over = asyncio.ensure_future(pg.query(url, "select pg_sleep(33)"))
            await asyncio.sleep(0.05)
            await made.finish(0.05)
            assert (await over).outcome is Outcome.CANCELLED

    run(go())


def test_connections_may_be_shared(run: Run, url: str) -> None:
    async def go() -> None:
        async with user(connections="shared", max_connections=2) as (vu, scope, pool):
            others = [vu, pool.client(), pool.client()]
            got = await asyncio.gather(
                *(one.postgres.query(url, "select $1::int", n) for one in others for n in range(5))
            )
            assert all(one.ok for one in got)
            assert scope.connects == 2

    run(go())


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1000)
        for part in parts:
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


@pytest.mark.parametrize(
    ("handler", "query", "outcome"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "", {Outcome.PROTOCOL, Outcome.RESET}),
        (says(b""), "", {Outcome.RESET}),
        (says(b"R\0\0"), "", {Outcome.RESET}),
        (says(stays=True), "", {Outcome.TIMEOUT}),
        (says(b"N", stays=True), "?sslmode=require", {Outcome.TLS}),
        (says(b"S\x15\x03\x01\x00\x02\x02\x28"), "?sslmode=require", {Outcome.TLS}),
        (says(b"R\0\0\0\x08\0\0\0\x63", stays=True), "", {Outcome.PROTOCOL}),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, query: str, outcome: set[Outcome]
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user(connect_timeout=5) as (vu, scope, _):
            where = f"postgresql://me@127.0.0.1:{server.port}/x{query}"
            got = await vu.postgres.query(where, "select 1", timeout=0.5)
            assert got.outcome in outcome, (got.outcome, got.error)
            assert re.search(r"127\.0\.0\.1", got.error), got.error
            assert scope.failures == [(got, False)]

    run(go())


def test_nobody_listens_and_no_such_host(run: Run) -> None:
    async def go() -> None:
        async with user() as (vu, _, _):
            got = await vu.postgres.query(f"postgresql://127.0.0.1:{free_port()}/x", "select 1")
            assert got.outcome is Outcome.REFUSED
            got = await vu.postgres.query("postgresql://no-such-host.invalid/x", "select 1")
            assert got.outcome is Outcome.DNS

    run(go())


@pytest.mark.parametrize(
    ("where", "sql", "values", "reason"),
    [
        ("mysql://a.example/x", "select 1", (), "not an address of PostgreSQL"),
        ("postgresql:///x", "select 1", (), "not an address of PostgreSQL"),
        ("postgresql://a.example/x?sslmode=perhaps", "select 1", (), "sslmode"),
        ("", b"select 1", (), "must be text"),
        ("", "select $1::int", (), "expects 1 argument"),
        ("", "select $1::int", ("x",), "invalid input for query argument"),
    ],
)
def test_what_the_author_got_wrong(
    run: Run, url: str, where: str, sql: Any, values: Any, reason: str
) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.postgres.query(where or url, sql, *values)
            assert (await vu.postgres.query(url, "select 1")).ok

    run(go())
