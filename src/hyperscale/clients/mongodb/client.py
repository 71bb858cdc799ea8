"""MongoDB: commands and transactions, on connections of our own; PyMongo's bson packs documents.

A user has one connection to a server, which it logs in at once. It talks to the server that the
address names and to no other of its replica set: a test that loads one wants to know which.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

from hyperscale.clients.contract import Call
from hyperscale.clients.extras import library
from hyperscale.clients.mongodb.connection import Connection
from hyperscale.clients.mongodb.scram import HASHES, Exchange, Refused
from hyperscale.clients.net.endpoint import Endpoint
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.services import Service, Services
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import MongoDBResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.texts import shown

DOCUMENTS_SHOWN = 20  # to those who look on
_NO_SUCH_TRANSACTION = 251  # the server has aborted it by itself


class Servers(Services):
    """MongoDB's own way to ask for TLS is `?tls=true`."""

    def _parsed(self, text: str) -> Service:
        service = super()._parsed(text)
        if service.scheme == "mongodb" and service.query.get("tls") == "true":
            return super()._parsed(f"mongodbs://{text.removeprefix('mongodb://')}")
        return service


class MongoDBPool(AddressPool):
    kind = "mongodb"
    schemes: ClassVar = {"mongodb": False, "mongodbs": True}
    ports: ClassVar = {"mongodb": (False, 27017), "mongodbs": (True, 27017)}

    def __init__(self, *args: Any) -> None:
        self.bson = library("bson", "mongodb")
        super().__init__(*args)
        self.addresses = Servers(self.network, self.ports)

    def client(self) -> MongoDBClient:
        return MongoDBClient(self)

    def packed(self, command: Mapping[str, Any]) -> bytes:
        """Raises BadInput."""
        try:
            return cast(bytes, self.bson.encode(command))
        except (self.bson.errors.BSONError, OverflowError, TypeError) as error:
            raise BadInput(f"the command {shown(command)} cannot be sent: {error}") from error


class Session:
    """Of the server: one transaction at a time, each with the next number."""

    __slots__ = ("id", "number")

    def __init__(self, bson: Any) -> None:
        self.id = {"id": bson.Binary(uuid.uuid4().bytes, 4)}
        self.number = 0


class Transaction:
    """Calls take it in place of an address."""

    __slots__ = ("address", "begun", "bson", "has_failed", "session")

    def __init__(self, address: str | URL, session: Session, bson: Any) -> None:
        self.address = address
        self.session = session
        self.bson = bson
        self.begun = self.has_failed = False
        session.number += 1

    def fields(self) -> dict[str, Any]:
        begins = {} if self.begun else {"startTransaction": True}
        self.begun = True
        number = self.bson.Int64(self.session.number)
        return {"lsid": self.session.id, "txnNumber": number, "autocommit": False, **begins}


Place = str | URL | Transaction
Document = Mapping[str, Any]


class MongoDBClient(AddressClient[MongoDBPool, Connection, MongoDBResponse]):
    response = MongoDBResponse

    def __init__(self, pool: MongoDBPool) -> None:
        super().__init__(pool)
        self._sessions: dict[Endpoint, list[Session]] = {}

    async def command(
        self, address: Place, command: Document, *, timeout: Any = None, name: str | None = None
    ) -> MongoDBResponse:
        """Any command of the server: `{"ping": 1}`."""
        if not isinstance(command, Mapping) or not command:
            raise BadInput(f"{shown(command)} is not a command", 'write it as {"ping": 1}')
        method = next(iter(command))
        return await self._run(str(method).upper(), address, command, timeout, name)

    async def find(
        self,
        address: Place,
        collection: str,
        filter: Document | None = None,
        *,
        timeout: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> MongoDBResponse:
        """All documents that match; `options` are those of the server: `sort`, `limit`, ..."""
        command = {"find": collection, "filter": filter or {}, **options}
        return await self._run("FIND", address, command, timeout, name or collection)

    async def aggregate(
        self,
        address: Place,
        collection: str,
        pipeline: Sequence[Document],
        *,
        timeout: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> MongoDBResponse:
        command = {"aggregate": collection, "pipeline": list(pipeline), "cursor": {}, **options}
        return await self._run("AGGREGATE", address, command, timeout, name or collection)

    async def count(
        self,
        address: Place,
        collection: str,
        filter: Document | None = None,
        *,
        timeout: Any = None,
        name: str | None = None,
    ) -> MongoDBResponse:
        command = {"count": collection, "query": filter or {}}
        return await self._run("COUNT", address, command, timeout, name or collection)

    async def insert(
        self,
        address: Place,
        collection: str,
        *documents: Document,
        timeout: Any = None,
        name: str | None = None,
    ) -> MongoDBResponse:
        """One or several, at once; the server gives an `_id` to those without."""
        if not documents:
            raise BadInput("there is no document to insert")
        command = {"insert": collection, "documents": list(documents)}
        return await self._run("INSERT", address, command, timeout, name or collection)

    async def update(
        self,
        address: Place,
        collection: str,
        filter: Document,
        change: Any,
        *,
        many: bool = False,
        upsert: bool = False,
        timeout: Any = None,
        name: str | None = None,
    ) -> MongoDBResponse:
        """`change` is `{"$set": {...}}` and the like, or a whole document in place of the first."""
        update = {"q": filter, "u": change, "multi": many, "upsert": upsert}
        command = {"update": collection, "updates": [update]}
        return await self._run("UPDATE", address, command, timeout, name or collection)

    async def delete(
        self,
        address: Place,
        collection: str,
        filter: Document,
        *,
        many: bool = False,
        timeout: Any = None,
        name: str | None = None,
    ) -> MongoDBResponse:
        delete = {"q": filter, "limit": 0 if many else 1}
        command = {"delete": collection, "deletes": [delete]}
        return await self._run("DELETE", address, command, timeout, name or collection)

    @asynccontextmanager
    async def transaction(
        self, address: str | URL, *, timeout: Any = None
    ) -> AsyncIterator[Transaction]:
        """`async with ... as tx:`, and `tx` in place of the address. It is aborted when the block
        raises or a call in it fails, else committed, which is a call of its own."""
        pool = self._pool
        idle = self._sessions.setdefault(pool.addresses.endpoint(address), [])
        session = idle.pop() if idle else Session(pool.bson)
        transaction = Transaction(address, session, pool.bson)
        ends = "abortTransaction"
        try:
            yield transaction
            ends = ends if transaction.has_failed else "commitTransaction"
        finally:
            if transaction.begun:
                command = {ends: 1, "$db": "admin"}
                await self._run(ends.upper(), transaction, command, timeout, ends)
            idle.append(session)

    async def _run(
        self, method: str, address: Place, command: Document, timeout: Any, name: str | None
    ) -> MongoDBResponse:
        pool = self._pool
        transaction = address if isinstance(address, Transaction) else None
        place = transaction.address if transaction else cast("str | URL", address)
        service = cast(Service, pool.addresses.endpoint(place))
        whole = {**command, "$db": command.get("$db", service.path or "test")}
        if transaction is not None:
            pool.packed(whole)  # what cannot be sent does not begin it
            whole |= transaction.fields()
        sent = pool.packed(whole)

        async def talk(connection: Connection, call: Call, answer: MongoDBResponse) -> None:
            call.begin()
            reply = await connection.exchange(call, sent)
            first_at, size = reply.first_at, reply.size
            answer.reply = reply.document
            _take(answer, reply.document)
            while answer.ok and (cursor := reply.document.get("cursor")) is not None:
                identity, ns = _batch(answer, cursor, service.authority)
                if not identity:
                    break
                if size > pool.options.max_response_bytes:
                    most = pool.options.max_response_bytes
                    text = f"{service.authority} sent documents of more than {most} bytes"
                    raise Failure(Outcome.PROTOCOL, text)
                more = {
                    "getMore": pool.bson.Int64(identity),
                    "collection": ns.partition(".")[2],
                    "$db": whole["$db"],
                    **(transaction.fields() if transaction else {}),
                }
                reply = await connection.exchange(call, pool.packed(more))
                size += reply.size
                _take(answer, reply.document)
            call.got(size, first_at, reply.last_at)
            if pool.trace is not None:
                answer.content = _shown(answer).encode()

        answer = await self._on(method, place, talk, timeout, name, sent)
        if transaction is not None:
            transaction.has_failed = transaction.has_failed or not answer.ok
        return answer

    async def _open(self, endpoint: Endpoint, call: Call) -> Connection:
        pool, service = self._pool, cast(Service, endpoint)
        sock, call.connect = await pool.network.open(service, pool.tls)
        most = pool.options.max_response_bytes
        connection = Connection(pool.bson, pool.network, service.authority, sock, most)
        try:
            await self._greet(connection, service)
        except BaseException:
            connection.shut()
            raise
        return connection

    async def _greet(self, connection: Connection, service: Service) -> None:
        """Log in, where the address has a user; otherwise there is nothing to say first."""
        if not service.user:
            return
        source = service.query.get("authSource") or service.path or "admin"
        mechanism = service.query.get("authMechanism") or await self._mechanism(
            connection, service, source
        )
        if mechanism not in HASHES:
            raise BadInput(f"authMechanism is {mechanism!r} but must be one of {', '.join(HASHES)}")
        exchange = Exchange(mechanism, service.user, _password(service, mechanism), _nonce())
        binary = self._pool.bson.Binary
        command: dict[str, Any] = {
            "saslStart": 1,
            "mechanism": mechanism,
            "payload": binary(exchange.first()),
            "options": {"skipEmptyExchange": True},
        }
        said = await self._asked(connection, {**command, "$db": source})
        try:
            final = exchange.final(_payload(said))
            number = said.get("conversationId")
            command = {"saslContinue": 1, "conversationId": number, "payload": binary(final)}
            said = await self._asked(connection, {**command, "$db": source})
            exchange.verify(_payload(said))
        except Refused as error:
            text = f"{service.authority} is not trusted: {error}"
            raise Failure(Outcome.PROTOCOL, text) from None
        while not said.get("done"):
            command = {"saslContinue": 1, "conversationId": number, "payload": binary(b"")}
            said = await self._asked(connection, {**command, "$db": source})

    async def _mechanism(self, connection: Connection, service: Service, source: str) -> str:
        """The best that the server has for that user."""
        hello = {"hello": 1, "saslSupportedMechs": f"{source}.{service.user}", "$db": "admin"}
        known = (await self._asked(connection, hello)).get("saslSupportedMechs") or ()
        return next((one for one in HASHES if one in known), "SCRAM-SHA-256")

    async def _asked(self, connection: Connection, command: dict[str, Any]) -> dict[str, Any]:
        said = await connection.ask(command)
        if not said.get("ok"):
            raise Failure(Outcome.STATUS, f"{connection.where} refused: {_told(said)}")
        return said


def _take(answer: MongoDBResponse, document: Document) -> None:
    count = document.get("n", 0)
    answer.count = count if isinstance(count, int) else 0
    error: Any = document
    if document.get("ok"):
        errors = document.get("writeErrors") or [document.get("writeConcernError")]
        error = errors[0] if isinstance(errors, list) else errors
    is_over = answer.method == "ABORTTRANSACTION" and document.get("code") == _NO_SUCH_TRANSACTION
    if error is not None and not is_over:
        error = error if isinstance(error, dict) else {"errmsg": error}
        answer.refused(_told(error), str(error.get("code", "")))


def _batch(answer: MongoDBResponse, cursor: Any, where: str) -> tuple[int, str]:
    """Take the documents; the number by which the server gives more (0: these were the last), and
    of which collection. Raises Failure."""
    if isinstance(cursor, dict):
        batch = cursor.get("firstBatch", cursor.get("nextBatch"))
        identity, ns = cursor.get("id"), cursor.get("ns")
        if isinstance(batch, list) and isinstance(identity, int) and isinstance(ns, str):
            answer.documents += batch
            answer.count = len(answer.documents)
            return identity, ns
    raise Failure(Outcome.PROTOCOL, f"{where} sent no cursor but {shown(cursor)}")


def _payload(said: Document) -> bytes:
    payload = said.get("payload")
    return payload if isinstance(payload, bytes) else b""


def _told(error: Document) -> str:
    words = (error.get("code"), error.get("codeName"), error.get("errmsg"))
    return " ".join(str(word) for word in words if word is not None)[:1000]


def _shown(answer: MongoDBResponse) -> str:
    return "\n".join(map(repr, answer.documents[:DOCUMENTS_SHOWN] or [answer.reply]))


def _nonce() -> str:
    return secrets.token_urlsafe(24)


def _password(service: Service, mechanism: str) -> str:
    if mechanism == "SCRAM-SHA-1":  # MongoDB hashes it first; no choice of ours
        plain = f"{service.user}:mongo:{service.password}".encode()
        return hashlib.md5(plain, usedforsecurity=False).hexdigest()
    if service.password.isascii():
        return service.password
    return str(library("pymongo.saslprep", "mongodb").saslprep(service.password))
