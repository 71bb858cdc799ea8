"""GraphQL: queries and mutations over the user's own client of HTTP/1.1 or HTTP/2, subscriptions
over WebSocket.

A request is one exchange of HTTP, with the user's cookies and connections, and is told as GraphQL.
An answer that has errors is a failure, whatever its status. Subscriptions speak
graphql-transport-ws, each on a session of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, cast

import msgspec

from hyperscale.clients.contract import Call, ProtocolClient, ProtocolPool
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.websocket.client import WebSocketClient, WebSocketPool
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import URL
from hyperscale.workload.replies import GraphQLResponse, WebSocketResponse
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import CURRENT, UNRECORDED, Label
from hyperscale.workload.texts import shown

if TYPE_CHECKING:
    from hyperscale.clients import Client

DOCUMENTS_MAX = 500  # kept with what is known of them; a test may make up others without end
SUBPROTOCOL = "graphql-transport-ws"
_OPERATION = re.compile(r"^[^\S\n]*(query|mutation|subscription)\b[^\S\n]*(\w*)", re.MULTILINE)
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_ID = "1"  # a session has one subscription


class Document(NamedTuple):
    kind: str
    name: str
    before: bytes  # the beginning of the request's JSON


class GraphQLPool(ProtocolPool):
    kind = "graphql"
    carrier: ClassVar[Literal["http", "http2"]] = "http"
    """The client of the user that carries queries."""

    def __init__(self, options: Any, network: Any, limit: Any = None) -> None:
        super().__init__(options, network)  # the limit is that of the HTTP client
        self._documents: dict[str, Document] = {}

    def client_of(self, user: Client) -> GraphQLClient:
        return GraphQLClient(self, user)

    def document(self, text: str) -> Document:
        """Raises BadInput."""
        known = self._documents.get(text) if isinstance(text, str) else None
        if known is None:
            if not isinstance(text, str) or not text.strip():
                raise BadInput(f"a document is {shown(text)} but must be text", "{ shop { name } }")
            _check(text)
            found = _OPERATION.search(text)
            kind, name = (found[1], found[2]) if found else ("query", "")
            known = Document(kind, name, b'{"query":' + msgspec.json.encode(text))
            if len(self._documents) >= DOCUMENTS_MAX:
                self._documents.clear()
            self._documents[text] = known
        return known


class GraphQLH2Pool(GraphQLPool):
    carrier = "http2"


class GraphQLClient(ProtocolClient[GraphQLPool]):
    def __init__(self, pool: GraphQLPool, user: Client) -> None:
        super().__init__(pool)
        self._user = user
        self._subscriptions: dict[int, WebSocketClient] = {}

    async def query(
        self,
        url: str | URL,
        document: str,
        variables: Any = None,
        *,
        operation: str = "",
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> GraphQLResponse:
        """A query or mutation; `operation` names one of several in the document."""
        known = self._pool.document(document)
        body = _body(known, variables, operation)
        given = _HEADERS if headers is None else {**_HEADERS, **dict(headers)}

        async def talk(call: Call, answer: GraphQLResponse) -> None:
            with _unrecorded():
                got: HTTPResponse = await getattr(self._user, self._pool.carrier).post(
                    url, data=body, headers=given, cookies=cookies, auth=auth, timeout=timeout
                )
            _take_over(call, answer, got)
            answer.take(got.content if got.status else b"")

        told = name or operation or known.name or str(url)
        make = partial(_response, str(url), body)
        return await self.call(known.kind.upper(), told, make, talk, timeout)

    mutation = query  # the document says which it is

    async def subscribe(
        self,
        url: str | URL,
        document: str,
        variables: Any = None,
        *,
        operation: str = "",
        payload: Any = None,
        headers: Any = None,
        cookies: Any = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> GraphQLResponse:
        """Open a session and subscribe; `payload` is for the server to know the user by. Give the
        response to `next` and `unsubscribe`."""
        known = self._pool.document(document)
        body = _body(known, variables, operation)
        session = WebSocketClient(cast(WebSocketPool, self._user._pool.protocol("websocket")))
        greeting: dict[str, Any] = {"type": "connection_init"}
        if payload is not None:
            greeting["payload"] = payload
        asked = b'{"id":"%b","type":"subscribe","payload":%b}' % (_ID.encode(), body)

        async def talk(call: Call, answer: GraphQLResponse) -> None:
            with _unrecorded():
                opened = await session.connect(
                    url,
                    headers=headers,
                    cookies=cookies,
                    subprotocols=(SUBPROTOCOL,),
                    timeout=timeout,
                )
                call.connect = opened.connect
                answer.status = opened.status
                _unless_failed(opened)
                if opened.headers.get("sec-websocket-protocol") != SUBPROTOCOL:
                    text = f"{answer.target} does not speak {SUBPROTOCOL}"
                    raise Failure(Outcome.PROTOCOL, text)
                call.begin()
                acknowledged = await session.request(
                    url, greeting, matching='"connection_ack"', timeout=timeout
                )
                _unless_failed(acknowledged)
                sent = await session.send(url, asked.decode(), timeout=timeout)
                _unless_failed(sent)
                call.wrote(acknowledged.bytes_out + sent.bytes_out)
                call.got(acknowledged.bytes_in, acknowledged.first_byte, acknowledged.ended)

        told = name or operation or known.name or str(url)
        make = partial(_response, str(url), body)
        answer = await self.call("SUBSCRIBE", told, make, talk, timeout)
        if answer.ok:
            answer.session = session
            self._subscriptions[id(session)] = session
        else:
            session.close()
        return answer

    async def next(
        self, subscription: GraphQLResponse, *, timeout: Any = None, name: str | None = None
    ) -> GraphQLResponse:
        """What the subscription gives next."""
        session, url = self._session(subscription), subscription.target

        async def talk(call: Call, answer: GraphQLResponse) -> None:
            call.begin()
            while True:
                with _unrecorded():
                    got = await session.receive(url, timeout=timeout)
                    _unless_failed(got)
                    try:
                        message = got.json()
                        kind = message["type"]
                    except (ValueError, KeyError, TypeError):
                        text = f"{url} sent something that is not {SUBPROTOCOL}: {got.data[:40]!r}"
                        raise Failure(Outcome.PROTOCOL, text) from None
                    call.got(got.bytes_in, got.first_byte, got.ended)
                    if kind == "ping":
                        await session.send(url, {"type": "pong"})
                        continue
                if kind == "complete":
                    raise Failure(Outcome.RESET, f"{url} has completed the subscription")
                if kind == "error":
                    answer.take_result({"errors": message.get("payload")})
                    return
                if kind == "next":
                    answer.content = got.data
                    answer.take_result(message.get("payload"))
                    return

        told = name or subscription.label.name
        answer = await self.call("NEXT", told, partial(_response, url, b""), talk, timeout)
        if answer.outcome in (Outcome.RESET, Outcome.PROTOCOL):
            await self.unsubscribe(subscription)
        return answer

    async def unsubscribe(self, subscription: GraphQLResponse) -> None:
        """End it and its session."""
        session = self._subscriptions.pop(id(subscription.session), None)
        if session is not None:
            with _unrecorded():
                url = subscription.target
                if url in session._sessions:
                    await session.send(url, {"id": _ID, "type": "complete"}, timeout=1.0)
            session.close()

    def _session(self, subscription: GraphQLResponse) -> WebSocketClient:
        session = getattr(subscription, "session", None)
        if not isinstance(session, WebSocketClient):
            raise BadInput(
                f"{shown(subscription)} is not a subscription", "give what subscribe() returned"
            )
        return session

    def close(self) -> None:
        for session in self._subscriptions.values():
            session.close()
        self._subscriptions.clear()


@contextmanager
def _unrecorded() -> Iterator[None]:
    """What HTTP and WebSocket do in here is told by the call around it."""
    before = CURRENT.set(UNRECORDED)
    try:
        yield
    finally:
        CURRENT.reset(before)


def _check(text: str) -> None:
    """The syntax, where graphql-core is installed."""
    if find_spec("graphql") is None:
        return
    from graphql import GraphQLSyntaxError, parse

    try:
        parse(text)
    except GraphQLSyntaxError as error:
        where = error.locations[0] if error.locations else None
        line = f" (line {where.line}, column {where.column})" if where else ""
        raise BadInput(f"the document is not GraphQL: {error.message}{line}") from None


def _body(document: Document, variables: Any, operation: str) -> bytes:
    body = document.before
    if operation:
        body += b',"operationName":' + msgspec.json.encode(operation)
    if variables is not None:
        try:
            body += b',"variables":' + msgspec.json.encode(variables)
        except (TypeError, ValueError) as error:
            raise BadInput(f"variables cannot be JSON: {error}") from None
    return body + b"}"


def _response(target: str, body: bytes, label: Label) -> GraphQLResponse:
    made = GraphQLResponse(label, target)
    made.request_bytes = body
    return made


def _take_over(call: Call, answer: GraphQLResponse, got: HTTPResponse) -> None:
    """What HTTP measured."""
    call.is_made = got.bytes_out > 0
    call.started, call.sent = got.started, got.sent
    call.first_byte, call.ended = got.first_byte, got.ended
    call.written, call.received, call.connect = got.bytes_out, got.bytes_in, got.connect
    answer.http = got
    answer.status = got.status
    if not got.status:
        raise Failure(got.outcome, got.error)


def _unless_failed(got: WebSocketResponse) -> None:
    if not got.ok:
        raise Failure(got.outcome, got.error)
