"""MongoDB: a server of its protocol, or a real one (`HYPERSCALE_TEST_MONGODB` names it; a replica
set, for transactions), and servers that keep to nothing."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import bson
import pymongo
import pytest
from pymongo.server_api import ServerApi

from hyperscale.errors import BadInput
from hyperscale.workload.results import CallFailed, Outcome
from tests.fixtures.mongo_server import PASSWORD, MongoServer, mongo_server

from .conftest import Run
from .scripted import Handler, Peer, client, serve
from .test_contract import user


@pytest.fixture
def server() -> Iterator[MongoServer]:
    with mongo_server() as made:
        yield made


@pytest.fixture
def url(server: MongoServer) -> str:
    return os.environ.get("HYPERSCALE_TEST_MONGODB") or at(server)


def at(server: MongoServer, who: str = "", rest: str = "shop") -> str:
    return f"mongodb://{who}127.0.0.1:{server.server_address[1]}/{rest}"


def test_documents_come_and_go(run: Run, url: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            mongo = vu.mongodb
            await mongo.command(url, {"drop": "things"})
            many = await mongo.insert(url, "things", *({"_id": n, "kind": "a"} for n in range(8)))
            assert (many.ok, many.count) == (True, 8), many.error
            assert (await mongo.insert(url, "things", {"kind": "b", "name": "lämp"})).count == 1
            found = await mongo.find(url, "things", {"kind": "a"}, sort={"_id": 1}, batchSize=3)
            assert [one["_id"] for one in found.documents] == list(range(8))
            assert found.count == 8
            assert (await mongo.find(url, "things", limit=2)).count == 2
            name = await mongo.find(url, "things", {"kind": "b"})
            assert name.document
            assert name.document["name"] == "lämp"
            changed = await mongo.update(url, "things", {"_id": 1}, {"$inc": {"stock": 5}})
            assert changed.count == 1
            match = [{"$match": {"stock": 5}}]
            assert (await mongo.aggregate(url, "things", match)).documents == [
                {"_id": 1, "kind": "a", "stock": 5}
            ]
            all_of = {"$set": {"kind": "c"}}
            assert (await mongo.update(url, "things", {"kind": "a"}, all_of, many=True)).count == 8
            assert (await mongo.delete(url, "things", {"kind": "c"})).count == 1
            assert (await mongo.delete(url, "things", {"kind": "c"}, many=True)).count == 7
            assert (await mongo.count(url, "things")).count == 1
            none = await mongo.find(url, "things", {"kind": "none"})
            assert (none.ok, none.document, none.count) == (True, None, 0)
            assert scope.connects == 1
            assert {each[0] for each in scope.noted} == {"mongodb"}
            for started, sent, first_byte, ended, *_ in scope.rows:
                assert started <= sent <= first_byte <= ended

    run(go())


def test_transactions(run: Run, url: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            mongo = vu.mongodb
            await mongo.command(url, {"drop": "things"})
            await mongo.insert(url, "things", {"_id": 1})
            async with mongo.transaction(url) as tx:
                await mongo.insert(tx, "things", {"_id": 2})
                assert (await mongo.count(url, "things")).count == 1, "nobody else sees it"
                assert (await mongo.find(tx, "things")).count == 2
            with suppress(KeyError):
                async with mongo.transaction(url) as tx:
                    await mongo.insert(tx, "things", {"_id": 3})
                    raise KeyError
            async with mongo.transaction(url) as tx:
                await mongo.insert(tx, "things", {"_id": 4})
                twice = await mongo.insert(tx, "things", {"_id": 1})
                assert twice.code == "11000"
            async with mongo.transaction(url):
                pass  # of which the server hears nothing
            left = await mongo.find(url, "things", sort={"_id": 1})
            assert [one["_id"] for one in left.documents] == [1, 2]
            assert [each.error for each, _ in scope.failures] == [twice.error], "and no abort"

    run(go())


def test_errors_are_the_servers(run: Run, url: str) -> None:
    async def go() -> None:
        async with user() as (vu, scope, _):
            mongo = vu.mongodb
            odd = await mongo.command(url, {"noSuchCommand": 1})
            assert (odd.outcome, odd.code) == (Outcome.STATUS, "59")
            assert "CommandNotFound" in odd.error
            with pytest.raises(CallFailed):
                assert odd.document
            await mongo.command(url, {"drop": "things"})
            await mongo.insert(url, "things", {"_id": 1})
            twice = await mongo.insert(url, "things", {"_id": 1})
            assert (twice.outcome, twice.code) == (Outcome.STATUS, "11000")
            assert (await mongo.command(url, {"ping": 1})).ok
            assert scope.connects == 1, "an answer keeps the connection"
            with pytest.raises(BadInput, match="cannot be sent"):
                await mongo.insert(url, "things", {"_id": object()})
            with pytest.raises(BadInput, match="cannot be sent"):
                await mongo.insert(url, "things", {"_id": 2**70})
            with pytest.raises(BadInput, match="no document"):
                await mongo.insert(url, "things")
            with pytest.raises(BadInput, match="not a command"):
                await mongo.command(url, "ping")  # type: ignore[arg-type]

    run(go())


def test_logging_in(run: Run, server: MongoServer) -> None:
    async def go() -> None:
        async with client() as vu:
            right = at(server, f"me:{quote(PASSWORD)}@", "shop?authSource=admin")
            assert (await vu.mongodb.command(right, {"ping": 1})).ok
            wrong = await vu.mongodb.command(at(server, "me:guess@"), {"ping": 1})
            assert wrong.outcome is Outcome.STATUS
            assert "18 AuthenticationFailed" in wrong.error
            assert "guess" not in wrong.error
            where = at(server, "me:x@", "shop?authMechanism=PLAIN")
            with pytest.raises(BadInput, match="authMechanism is 'PLAIN'"):
                await vu.mongodb.command(where, {"ping": 1})

    run(go())


def test_pymongo_finds_the_same_server(server: MongoServer) -> None:
    """So that the server of these tests is one for others too."""
    api = ServerApi("1")
    where = at(server, f"me:{quote(PASSWORD)}@", "shop?authSource=admin")
    with pymongo.MongoClient[dict[str, Any]](where, server_api=api, directConnection=True) as made:
        things = made.shop.things
        things.insert_many([{"_id": n, "kind": "a"} for n in range(8)])
        assert [one["_id"] for one in things.find({"kind": "a"})] == list(range(8))
        assert things.update_one({"_id": 3}, {"$set": {"kind": "b"}}).matched_count == 1
        with pytest.raises(pymongo.errors.DuplicateKeyError):
            things.insert_one({"_id": 3})
        assert things.delete_many({"kind": "a"}).deleted_count == 7


def reply(document: bytes, number: int = 1, flags: int = 0, operation: int = 2013) -> bytes:
    size = 21 + len(document)
    return struct.pack("<iiiiIB", size, 1, number, operation, flags, 0) + document


def says(*parts: bytes, stays: bool = False) -> Handler:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(21)  # a request has come
        for part in parts:
            await peer.send(part)
        if stays:
            await peer.gone()

    return handler


GOOD = bson.encode({"ok": 1.0})
ENDLESS = {"ok": 1.0, "cursor": {"id": bson.Int64(7), "ns": "a.b", "firstBatch": ["x" * 900]}}


async def endless(peer: Peer) -> None:
    number = 0
    while await peer.reader.read(65536):
        number += 1
        await peer.send(reply(bson.encode(ENDLESS), number))


@pytest.mark.parametrize(
    ("handler", "outcome"),
    [
        (says(b"HTTP/1.1 400 Bad Request\r\n\r\n", stays=True), Outcome.PROTOCOL),
        (says(b"\x05\0\0\0\x0ahello", stays=True), Outcome.PROTOCOL),
        (says(reply(GOOD, number=9), stays=True), Outcome.PROTOCOL),
        (says(reply(GOOD, flags=2), stays=True), Outcome.PROTOCOL),
        (says(reply(GOOD, operation=1), stays=True), Outcome.PROTOCOL),
        (says(reply(b"\x09\0\0\0garbage!"), stays=True), Outcome.PROTOCOL),
        (says(reply(bson.encode({"ok": 1.0, "cursor": 5})), stays=True), Outcome.PROTOCOL),
        (says(reply(bson.encode({"ok": 1.0, "writeErrors": [5]})), stays=True), Outcome.STATUS),
        (endless, Outcome.PROTOCOL),
        (says(reply(GOOD)[:20]), Outcome.RESET),
        (says(), Outcome.RESET),
        (says(reply(GOOD)[:20], stays=True), Outcome.TIMEOUT),
        (says(reply(GOOD + b"abcd", flags=1), stays=True), Outcome.OK),
    ],
)
def test_servers_that_keep_to_nothing(run: Run, handler: Handler, outcome: Outcome) -> None:
    async def go() -> None:
        limits = {"max_response_bytes": 100_000}
        async with serve(handler=handler) as server, user(**limits) as (vu, _, _):
            where = f"mongodb://127.0.0.1:{server.port}/x"
            got = await vu.mongodb.find(where, "things", timeout=0.5)
            assert got.outcome is outcome, got.error

    run(go())


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"r=other,s=YQ==,i=4096", "its nonce"),
        (b"r=NONCEx,s=YQ==,i=1", "1 rounds"),
        (b"r=NONCEx,s=YQ==,i=4000000000", "4000000000 rounds"),
        (b"hello", "not one of SCRAM"),
        (b"r=NONCEx,s=YQ==,i=4096", "does not know the password"),
    ],
)
def test_a_server_that_cannot_prove_itself(run: Run, challenge: bytes, reason: str) -> None:
    async def handler(peer: Peer) -> None:
        for number in (1, 2):
            head = await peer.reader.readexactly(4)
            size = int.from_bytes(head, "little")
            asked = bson.decode((head + await peer.reader.readexactly(size - 4))[21:])
            ours = bytes(asked["payload"]).partition(b"r=")[2]
            said = challenge.replace(b"NONCE", ours) if number == 1 else b"v=YQ=="
            document = {"ok": 1.0, "conversationId": 1, "payload": said, "done": number == 2}
            await peer.send(reply(bson.encode(document), number))
            if number == 1 and reason != "does not know the password":
                await peer.gone()
                return

    async def go() -> None:
        async with serve(handler=handler) as server, client() as vu:
            rest = "x?authMechanism=SCRAM-SHA-256"
            where = f"mongodb://me:secret@127.0.0.1:{server.port}/{rest}"
            got = await vu.mongodb.command(where, {"ping": 1}, timeout=5)
            assert got.outcome is Outcome.PROTOCOL
            assert reason in got.error

    run(go())
