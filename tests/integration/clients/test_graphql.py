"""GraphQL: a real server, and answers that are none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.graphql_shop import graphql_shop, graphql_shop_h2, seen

from .conftest import Run
from .scripted import client, response, serve
from .test_contract import free_port, user

ITEM = "query Item($id: Int!) { item(id: $id) { id name } }"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with graphql_shop() as made:
        yield made


def test_queries_mutations_and_errors(run: Run, port: int) -> None:
    async def go() -> None:
        seen.clear()
        async with user() as (vu, scope, _):
            url = f"http://127.0.0.1:{port}/"
            got = await vu.graphql.query(url, ITEM, {"id": 7})
            assert got.data == {"item": {"id": 7, "name": "item 7"}}
            assert got.http.status == got.status == 200
            assert got.connect is not None
            both = "query A { item(id: 1) { name } } query B { item(id: 2) { name } }"
            named = await vu.graphql.query(url, both, operation="B")
            assert named.data == {"item": {"name": "item 2"}}
            done = await vu.graphql.mutation(url, "mutation { buy(id: 3) }")
            assert done.data == {"buy": 3}
            missing = await vu.graphql.query(url, ITEM, {"id": 101})
            assert (missing.status, missing.outcome) == (200, Outcome.STATUS)
            assert missing.error == "there is no item 101"
            assert missing.data is None
            wrong = await vu.graphql.query(url, "{ nothing }")
            assert "Cannot query field 'nothing'" in wrong.error
            assert [one[:3] for one in scope.noted] == [
                ("graphql", "QUERY", "Item"),
                ("graphql", "QUERY", "B"),
                ("graphql", "MUTATION", url),
            ]
            assert [result for result, _ in scope.failures] == [missing, wrong]
            assert all(row[-1] > 0 and row[-2] > 0 for row in scope.rows)
        assert seen == {"item": 3, "buy": 1}

    run(go())


def test_queries_over_http2(run: Run) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            url = f"http://127.0.0.1:{port}/"
            asked = (vu.graphqlh2.query(url, ITEM, {"id": n}) for n in range(1, 11))
            many = await asyncio.gather(*asked)
            names = [one.data["item"]["name"] for one in many]
            assert names == [f"item {n}" for n in range(1, 11)]
            assert scope.connects == 1, "all are streams of one connection"
            missing = await vu.graphqlh2.query(url, ITEM, {"id": 101})
            assert (missing.status, missing.error) == (200, "there is no item 101")
            assert (await vu.graphqlh2.mutation(url, "mutation { buy(id: 3) }")).data == {"buy": 3}
            assert {each[0] for each in scope.noted} == {"graphql"}
            gone = await vu.graphqlh2.query(f"http://127.0.0.1:{free_port()}/", ITEM, {"id": 1})
            assert gone.outcome is Outcome.REFUSED

    with graphql_shop_h2() as port:
        run(go())
        assert seen == {"item": 11, "buy": 1, "HTTP/2": 12}


def test_subscriptions(run: Run, port: int) -> None:
    async def go() -> None:
        seen.clear()
        async with user() as (vu, scope, _):
            url, graphql = f"ws://127.0.0.1:{port}/", vu.graphql
            document = "subscription Count($to: Int!) { count(to: $to) }"
            opened = await graphql.subscribe(url, document, {"to": 3})
            other = await graphql.subscribe(url, document, {"to": 2}, payload={"token": "x"})
            got = [await graphql.next(opened) for _ in range(3)]
            assert [one.data["count"] for one in got] == [0, 1, 2]
            over = await graphql.next(opened)
            assert (over.outcome, over.error) == (
                Outcome.RESET,
                f"{url} has completed the subscription",
            )
            assert (await graphql.next(other)).data == {"count": 0}
            await graphql.unsubscribe(other)
            await graphql.unsubscribe(other)
            wrong = await graphql.subscribe(url, "subscription { nothing }")
            refused = await graphql.next(wrong)
            assert "Cannot query field 'nothing'" in refused.error
            assert {one[0] for one in scope.noted} == {"graphql"}
            assert [one[1] for one in scope.noted].count("NEXT") == 4
            assert scope.connects == 3
        assert seen["count"] == 2

    run(go())


@pytest.mark.parametrize(
    ("answer", "outcome", "what"),
    [
        (response(b"<h1>oops</h1>"), Outcome.PROTOCOL, "answered 200 with something that is not"),
        (response(b"[1]"), Outcome.PROTOCOL, "not GraphQL"),
        (response(b"{}"), Outcome.PROTOCOL, "not GraphQL"),
        (response(b"gone", "502 Bad Gateway"), Outcome.STATUS, "answered 502"),
        (response(b'{"errors": ["no"]}'), Outcome.STATUS, "no"),
        (
            response(b'{"errors": [{"message": 5, "extensions": {"code": "X"}}]}'),
            Outcome.STATUS,
            "5",
        ),
        (response(b'{"data": null}', "500 No"), Outcome.STATUS, "500 without errors"),
        (b"nonsense", Outcome.PROTOCOL, "not HTTP"),
        (None, Outcome.RESET, "closed the connection"),
    ],
)
def test_answers_that_are_none(run: Run, answer: Any, outcome: Outcome, what: str) -> None:
    async def go() -> None:
        async with serve(answer or (lambda _: None)) as server, user() as (vu, scope, _):
            got = await vu.graphql.query(server.url, "{ a }", timeout=5)
            assert got.outcome is outcome, got.error
            assert re.search(what, got.error), got.error
            assert [result for result, _ in scope.failures] == [got]

    run(go())


def test_nobody_listens_and_no_subscriptions(run: Run, port: int) -> None:
    async def go() -> None:
        async with serve(response(b"hello")) as server, user() as (vu, scope, _):
            got = await vu.graphql.query(f"http://127.0.0.1:{free_port()}/", "{ a }")
            assert got.outcome is Outcome.REFUSED
            with pytest.raises(CallFailed):
                assert got.data
            late = await vu.graphql.subscribe(
                f"ws://127.0.0.1:{free_port()}/", "subscription { a }"
            )
            assert late.outcome is Outcome.REFUSED
            none = await vu.graphql.subscribe(
                server.url.replace("http", "ws"), "subscription { a }"
            )
            assert none.outcome is Outcome.PROTOCOL
            assert "200 OK instead of a WebSocket" in none.error
            assert scope.failures == [(got, False), (late, False), (none, False)]

    run(go())


@pytest.mark.parametrize(
    ("document", "variables", "reason"),
    [
        ("{ item(id: }", None, r"not GraphQL: Syntax Error.*line 1, column 12"),
        ("", None, "must be text"),
        (5, None, "must be text"),
        ("{ a }", {"x": object()}, "cannot be JSON"),
    ],
)
def test_what_the_author_got_wrong(run: Run, document: Any, variables: Any, reason: str) -> None:
    async def go() -> None:
        async with client() as vu:
            with pytest.raises(BadInput, match=reason):
                await vu.graphql.query("http://127.0.0.1:1/", document, variables)
            with pytest.raises(BadInput, match="not a subscription"):
                await vu.graphql.next(document)

    run(go())
