"""MySQL: a real server (MariaDB), and servers that keep to nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hyperscale.clients import Client
from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.mariadb import mariadb

from .certificates import Authority
from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import free_port, user


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def url(authority: Authority) -> Iterator[str]:
    leaf = authority.issue("localhost")
    with mariadb(f"--ssl-cert={leaf}", f"--ssl-key={leaf}") as url:
        yield url


@pytest.mark.xdist_group("mariadb")
class TestServed:
    def test_queries_statements_and_transactions(self, run: Run, url: str) -> None:
        async def go() -> None:
            async with user() as (vu, scope, _):
                my = vu.mysql
                await my.execute(url, "drop table if exists things")
                made = await my.execute(
                    url, "create table things (id int auto_increment primary key, name text)"
                )
                assert made.ok, made.error
                one = await my.execute(url, "insert into things (name) values (?)", "lämp")
                assert (one.row_count, one.last_id) == (1, 1)
                async with my.transaction(url) as tx:
                    await my.execute(tx, "insert into things (name) values (?)", "kept")
                with suppress(KeyError):
                    async with my.transaction(url) as tx:
                        await my.execute(tx, "insert into things (name) values (?)", "lost")
                        raise KeyError
                async with my.transaction(url) as tx:
                    await my.execute(tx, "insert into things (name) values ('lost too')")
                    assert not (await my.execute(tx, "insert into things (id) values (?)", 1)).ok
                got = await my.query(url, "select id, name from things where id < ? order by id", 9)
                assert (got.rows, got.columns) == ([(1, "lämp"), (2, "kept")], ("id", "name"))
                assert (got.row_count, got.value) == (2, 1)
                text = await my.query(url, "select count(*), null, 1.5 from things")
                assert text.rows[0][:2] == (2, None)
                assert (await my.prepare(url, "select name from things where id = ?")).ok
                assert scope.connects == 1
                assert {each[0] for each in scope.noted} == {"mysql"}
                for started, sent, first_byte, ended, *_ in scope.rows:
                    assert started <= sent <= first_byte <= ended

        run(go())

    def test_errors_are_the_servers(self, run: Run, url: str) -> None:
        async def go() -> None:
            async with user() as (vu, scope, _):
                none = await vu.mysql.query(url, "select * from nowhere")
                assert (none.outcome, none.code) == (Outcome.STATUS, "1146")
                assert "nowhere" in none.error
                with pytest.raises(CallFailed):
                    assert none.value
                prepared = await vu.mysql.query(url, "select * from nowhere where id = ?", 1)
                assert prepared.code == "1146"
                assert (await vu.mysql.query(url, "select 1")).value == 1
                assert scope.connects == 1, "an answer keeps the connection"
                bad = await vu.mysql.query(url.replace("secret", "guess"), "select 1")
                assert bad.outcome is Outcome.STATUS
                assert "1045" in bad.error
                assert "guess" not in bad.error
                nodb = await vu.mysql.query(url.replace("/shop", "/none"), "select 1")
                assert "1049" in nodb.error
                with pytest.raises(BadInput, match="takes 1 values, not 2"):
                    await vu.mysql.query(url, "select ?", 1, 2)
                with pytest.raises(BadInput, match="must be text"):
                    await vu.mysql.query(url, b"select 1")  # type: ignore[arg-type]
                assert (await vu.mysql.query(url, "select 1")).ok

        run(go())

    def test_slow_cancelled_and_cut_off(self, run: Run, url: str) -> None:
        async def go() -> None:
            async with user() as (vu, _, made):
                my = vu.mysql
                late = await my.query(url, "select sleep(30)", timeout=0.2)
                assert late.outcome is Outcome.TIMEOUT
                assert (await my.query(url, "select 1")).ok
                call = asyncio.ensure_future(my.query(url, "select sleep(31)"))
                await runs(vu, url, "select sleep(31)")
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                victim = asyncio.ensure_future(my.query(url, "select sleep(32)"))
                number = await runs(vu, url, "select sleep(32)")
                await my.execute(url, f"kill {number}")
                killed = await victim
                assert killed.outcome in (Outcome.RESET, Outcome.STATUS), killed.error
                assert (await my.query(url, "select 1")).ok
                over = asyncio.ensure_future(my.query(url, "select sleep(33)"))
                await runs(vu, url, "select sleep(33)")
                await made.finish(0.05)
                assert (await over).outcome is Outcome.CANCELLED

        run(go())

    def test_tls_and_shared_connections(self, run: Run, url: str, authority: Authority) -> None:
        async def go() -> None:
            async with client(ca=authority.ca) as vu:
                got = await vu.mysql.query(f"{url}?ssl=require", "show status like 'Ssl_cipher'")
                assert got.ok, got.error
                assert got.rows[0][1]
            async with client() as vu:
                refused = await vu.mysql.query(f"{url}?ssl=require", "select 1")
                assert refused.outcome is Outcome.TLS, refused.error
            async with user(connections="shared", max_connections=2) as (vu, scope, pool):
                others = [vu, pool.client(), pool.client()]
                many = await asyncio.gather(
                    *(one.mysql.query(url, "select ?", n) for one in others for n in range(5))
                )
                assert sorted(one.value for one in many) == sorted([*range(5)] * 3)
                assert scope.connects == 2

        run(go())


async def runs(vu: Client, url: str, sql: str) -> int:
    """The number of the connection on which the statement runs, when it does."""
    async with asyncio.timeout(10):
        while True:
            got = await vu.mysql.query(
                url, "select id from information_schema.processlist where info = ?", sql
            )
            if got.row_count:
                return int(got.value)


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        for part in parts:
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


@pytest.mark.parametrize(
    ("handler", "query", "outcomes"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "", {Outcome.PROTOCOL, Outcome.RESET}),
        (says(b"\x05\0\0\0\x0ahello", stays=True), "", {Outcome.PROTOCOL}),
        (says(b"\x20\0\0\0\x0a5.5"), "", {Outcome.RESET}),
        (says(), "", {Outcome.RESET}),
        (says(stays=True), "", {Outcome.TIMEOUT}),
        (says(b"\x17\0\0\0\xff\x10\x04Too many connections"), "", {Outcome.STATUS}),
        (says(b"\x20\0\0\0\x0a5.5"), "?ssl=require", {Outcome.RESET, Outcome.TLS}),
    ],
)
def test_servers_that_keep_to_nothing(
    run: Run, handler: Handler, query: str, outcomes: set[Outcome]
) -> None:
    async def go() -> None:
        async with serve(handler=handler) as server, user(connect_timeout=5) as (vu, scope, _):
            where = f"mysql://me@127.0.0.1:{server.port}/x{query}"
            got = await vu.mysql.query(where, "select 1", timeout=0.5)
            assert got.outcome in outcomes, (got.outcome, got.error)
            assert "127.0.0.1" in got.error, got.error
            assert scope.failures == [(got, False)]

    run(go())


def test_nobody_listens_and_no_such_host(run: Run, tmp_path: Path) -> None:
    async def go() -> None:
        async with client() as vu:
            for query in ("", "?ssl=require"):
                where = f"mysql://127.0.0.1:{free_port()}/x{query}"
                assert (await vu.mysql.query(where, "select 1")).outcome is Outcome.REFUSED
            gone = await vu.mysql.query("mysql://no-such-host.invalid/x", "select 1")
            assert gone.outcome is Outcome.DNS
            nothing = await vu.mysql.query(f"mysql:///x?socket={tmp_path}/none", "select 1")
            assert nothing.outcome is Outcome.REFUSED

    run(go())


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("postgresql://a.example/x", "not an address of MySQL"),
        ("mysql:///x", "not an address of MySQL"),
        ("mysql://a.example/x?ssl=perhaps", "ssl is 'perhaps'"),
        ("mysql://a.example:port/x", "is not an address"),
    ],
)
def test_what_the_author_got_wrong(run: Run, where: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.mysql.query(where, "select 1")

    run(go())
