"""The gRPC client of one virtual user: `self.client.grpc` in a workflow.

A call with the arguments of an earlier one finds its request encoded; its messages are
serialized for each call, unless they are typed arguments (`Data`) or bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from hyperscale.clients.counting import note
from hyperscale.clients.grpc.call import GRPCCall, Request
from hyperscale.clients.grpc.head import Metadata, head_of, pairs_of
from hyperscale.clients.grpc.methods import (
    REFLECTION,
    Method,
    Reflected,
    answer_type,
    described,
    encoded,
    path_of,
    question,
)
from hyperscale.clients.grpc.streaming import BidiStream, send_all
from hyperscale.clients.http.request import NAME_MAX, keep
from hyperscale.clients.http.request import Request as HTTPRequest
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.clients.http2.connection import Connection
from hyperscale.clients.http2.pool import StreamPool
from hyperscale.clients.limits import call_timeout
from hyperscale.clients.net import failures
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.net.network import Network
from hyperscale.clients.request_limit import RequestLimit
from hyperscale.errors import BadInput, RunFailed
from hyperscale.workload.arguments import URL
from hyperscale.workload.grpc_response import GRPCResponse
from hyperscale.workload.http_options import HTTPOptions
from hyperscale.workload.protos import Protos, protobuf
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import Label, Tags
from hyperscale.workload.texts import UNPRINTABLE, shown

_SCHEMES = {"grpc": "http", "grpcs": "https", "http": "http", "https": "https"}


LOOK_S = 0.005  # for the greeting of a server


class GRPCPool(StreamPool):
    def __init__(
        self, options: HTTPOptions, network: Network, limit: RequestLimit | None = None
    ) -> None:
        super().__init__(options, network, limit, HTTPRequest)
        protobuf("message")  # what is missing is said now
        self.requests: dict[Any, Request] = {}
        self.methods: dict[Any, Method] = {}
        self._labels: dict[Any, Label] = {}
        self._targets: dict[str, Target] = {}
        self._reflected: dict[tuple[Route, str], asyncio.Task[Method]] = {}

    def client(self) -> GRPCClient:
        return GRPCClient(self)

    def target(self, address: str | URL) -> Target:
        """Raises BadInput."""
        text = str(address)
        known = self._targets.get(text)
        if known is None:
            scheme, found, rest = text.partition("://")
            if not found:
                scheme, rest = "grpc", text
            if scheme not in _SCHEMES or rest.rstrip("/").count("/"):
                raise BadInput(
                    f"{shown(text)} is not an address of gRPC",
                    "write grpc://shop.example:50051, or grpcs:// for TLS; the method is apart",
                )
            known = self._targets[text] = Target(f"{_SCHEMES[scheme]}://{rest}")
        return known

    def label(self, kind: str, name: str, tags: Tags) -> Label:
        """Equal ones are the same object."""
        known = self._labels.get((kind, name, tags))
        if known is None:
            if UNPRINTABLE.search("".join((name, *(text for tag in tags for text in tag)))):
                raise BadInput(f"name or tags of a call contain a control character: {shown(name)}")
            known = Label(kind, name[:NAME_MAX], tags, kind="grpc")
            keep(self._labels, (kind, name, tags), known)
        return known

    async def prepare(self, url: URL) -> None:
        route = self.route(self.target(url))
        if route.secure:
            self.tls.context(route.host)
        try:
            await self.network.addresses(route, route.peer_name)
        except Failure as failure:
            raise RunFailed(
                failure.error, f"check the host of {url} and this machine's DNS"
            ) from None

    async def reflected(self, client: GRPCClient, target: Target, path: str) -> Method:
        """The method as the server describes it, asked for once. Raises Failure, BadInput."""
        key = self.route(target), path
        task = self._reflected.get(key)
        if task is None:
            task = self._reflected[key] = asyncio.ensure_future(client.reflect(target, path))
        try:
            return await asyncio.shield(task)
        except Failure:
            self._reflected.pop(key, None)  # the next call may find the server there
            raise


class GRPCClient:
    """Arguments of every call: the address, the method as `package.Service/Method`, and what to
    send: a dict, a message of protobuf, bytes, or a typed `Data`.

    protos    Protos: what describes the service; else the modules that protoc made and that are
              imported, else the server is asked (reflection)
    metadata  dict or list of pairs; bytes for names that end in -bin
    timeout   seconds or "5s": the deadline, which the server is told
    compress  "gzip": messages are sent compressed
    name      what its calls are told under         tags  dict, for reports and thresholds
    """

    __slots__ = ("_held", "_pool", "_recent")

    def __init__(self, pool: GRPCPool) -> None:
        self._pool = pool
        self._held = pool.held()
        self._recent: Connection | None = None

    async def connect(
        self, address: str | URL, *, timeout: Any = None, name: str | None = None
    ) -> GRPCResponse:
        """Open the connection now, until the server says that it speaks HTTP/2; other calls do so
        by themselves."""
        pool = self._pool
        route = pool.route(pool.target(address))
        label = pool.label("CONNECT", name or route.authority, ())
        allowed = pool.timeout if timeout is None else call_timeout(timeout)
        request = Request(
            Method("/", None, None, False, False), route, b"", label, (), allowed, False
        )
        began = perf_counter()
        answer = GRPCResponse(label, route.authority, request.method)
        try:
            connection = await pool.acquire(self._held, route, began + allowed)
            answer.connect, answer.started = connection.connect, perf_counter()
            connection.flush_soon()
            while not connection.http.is_greeted:
                if not connection.alive:
                    text = f"{route.where} closed the connection; it may not speak HTTP/2"
                    raise Failure(Outcome.PROTOCOL, text)
                if perf_counter() > began + allowed:
                    raise failures.timed_out(route.where, allowed)
                await asyncio.sleep(LOOK_S)
        except Failure as failure:
            return await self._unsent(request, failure, began)
        answer.sent = answer.started
        answer.first_byte = answer.ended = perf_counter()
        return answer

    async def unary(
        self,
        address: str | URL,
        method: str,
        message: Any = None,
        *,
        protos: Protos | Any = None,
        metadata: Metadata = None,
        timeout: Any = None,
        compress: str | None = None,
        name: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> GRPCResponse:
        """One message there, one back."""
        pool = self._pool
        if isinstance(protos, list):
            protos = tuple(protos)
        key = "UNARY", address, method, protos, timeout, compress, name, type(message)
        request = pool.requests.get(key) if metadata is None and tags is None else None
        if request is None:
            made = await self._request(
                key, metadata, tags, message, streams_in=False, streams_out=False
            )
            if isinstance(made, GRPCResponse):
                return made
            request = made
        payload = request.framed(encoded(request.method, message))
        if pool.limit is not None:
            await pool.limit.wait()
        connection = self._recent
        if (
            connection is not None
            and connection.route is request.route
            and connection.connect is None
            and connection.has_room
        ):
            call = GRPCCall(connection, request, payload, True)
        else:
            began = perf_counter()
            try:
                call = await self._opened(request, payload, True)
            except Failure as failure:
                return await self._unsent(request, failure, began)
        await self._over(call, call.ask())
        if call.answer.outcome is Outcome.RESET and not call.answer.bytes_out:
            # The server left it out when it said goodbye: as if it had not been sent.
            try:
                call = await self._opened(request, payload, True)
            except Failure as failure:
                return await self._unsent(request, failure, perf_counter())
            await self._over(call, call.ask())
        return self._noted(call)

    async def server_stream(
        self, address: str | URL, method: str, message: Any = None, **named: Any
    ) -> GRPCResponse:
        """One message there, many back: `messages` of the response, when all of them have come."""
        return await self._stream("SERVER_STREAM", address, method, [message], named)

    async def client_stream(
        self,
        address: str | URL,
        method: str,
        messages: Iterable[Any] | AsyncIterable[Any],
        **named: Any,
    ) -> GRPCResponse:
        """Many messages there, as the iterator gives them, and one back."""
        return await self._stream("CLIENT_STREAM", address, method, messages, named)

    async def bidi_stream(
        self,
        address: str | URL,
        method: str,
        messages: Iterable[Any] | AsyncIterable[Any],
        **named: Any,
    ) -> GRPCResponse:
        """Many messages there and many back, at the same time."""
        return await self._stream("BIDI_STREAM", address, method, messages, named)

    @asynccontextmanager
    async def open(
        self, address: str | URL, method: str, **named: Any
    ) -> AsyncIterator[BidiStream]:
        """A stream to talk on: `send`, `receive`, `end`. It is one call, counted when it is over;
        leaving the block ends it, and `response` is there."""
        request = await self._streaming("STREAM", address, method, None, named)
        talk = BidiStream(request)
        if isinstance(request, Request):
            began = perf_counter()
            if self._pool.limit is not None:
                await self._pool.limit.wait()
            try:
                talk.call = await self._opened(request, b"", False)
                talk.waiter = talk.call.ask()
            except Failure as failure:
                talk.made = await self._unsent(request, failure, began)
        try:
            yield talk
            if talk.call is not None:
                await talk.finish()
        finally:
            if talk.call is not None:
                talk.call.abort_call()
                talk.made = self._noted(talk.call)

    async def _stream(
        self, kind: str, address: str | URL, method: str, messages: Any, named: dict[str, Any]
    ) -> GRPCResponse:
        request = await self._streaming(kind, address, method, messages, named)
        if isinstance(request, GRPCResponse):
            return request
        if self._pool.limit is not None:
            await self._pool.limit.wait()
        began = perf_counter()
        single = isinstance(messages, list) and len(messages) == 1
        first = request.framed(encoded(request.method, messages[0])) if single else b""
        try:
            call = await self._opened(request, first, single)
        except Failure as failure:
            return await self._unsent(request, failure, began)
        waiter = call.ask()
        if single:
            await self._over(call, waiter)
            return self._noted(call)
        sending = asyncio.ensure_future(send_all(call, messages))
        try:
            await self._over(call, waiter)
        finally:
            sending.cancel()
            ended = await asyncio.gather(sending, return_exceptions=True)
        if isinstance(ended[0], Exception):
            raise ended[0]
        return self._noted(call)

    async def _streaming(
        self, kind: str, address: str | URL, method: str, messages: Any, named: dict[str, Any]
    ) -> Request | GRPCResponse:
        options: dict[str, Any] = {"protos": None, "timeout": None, "compress": None, "name": None}
        metadata, tags = named.pop("metadata", None), named.pop("tags", None)
        unknown = named.keys() - options.keys()
        if unknown:
            raise TypeError(f"a call of gRPC has no argument {min(unknown)!r}")
        options.update(named)
        if isinstance(options["protos"], list):
            options["protos"] = tuple(options["protos"])
        sample = messages[0] if isinstance(messages, list) and messages else None
        key = kind, address, method, *options.values(), type(sample)
        return await self._request(
            key,
            metadata,
            tags,
            sample,
            streams_in=None if kind == "STREAM" else kind != "SERVER_STREAM",
            streams_out=None if kind == "STREAM" else kind != "CLIENT_STREAM",
        )

    # -- requests ----------------------------------------------------------------------------------

    async def _request(
        self,
        key: tuple[Any, ...],
        metadata: Metadata,
        tags: Mapping[str, str] | None,
        message: Any,
        streams_in: bool | None,
        streams_out: bool | None,
    ) -> Request | GRPCResponse:
        """The Request of these arguments, or the response that says why the server could not be
        asked for its description."""
        kind, address, name, protos, timeout, compress, told_as, _ = key
        pool = self._pool
        pairs = pairs_of(metadata)
        tagged = tuple((str(tag), str(value)) for tag, value in (tags or {}).items())
        known = (*key, pairs, tagged) if pairs or tagged else key
        if known in pool.requests:
            return pool.requests[known]
        path = path_of(name)
        target = pool.target(address)
        allowed = pool.timeout if timeout is None else call_timeout(timeout)
        if compress not in (None, "gzip"):
            raise BadInput(f"compress of a call is {shown(compress)} but must be 'gzip'")
        label = pool.label(kind, told_as or path[1:], tagged)
        route = pool.route(target)
        try:
            method = await self._method(target, path, protos, message)
        except Failure as failure:
            empty = Method(path, None, None, False, False)
            request = Request(empty, route, b"", label, (), allowed, False)
            return await self._unsent(request, failure, perf_counter())
        if method is None:
            method = Method(path, None, None, bool(streams_in), bool(streams_out))
        for is_many, wanted, what in (
            (method.streams_in, streams_in, "takes"),
            (method.streams_out, streams_out, "gives"),
        ):
            if wanted is not None and wanted != is_many:
                many = "many messages" if is_many else "one message"
                raise BadInput(f"{path[1:]} {what} {many}: {kind.lower()} is not for it")
        head = head_of(target, path, pairs, allowed, compress)
        request = Request(method, route, head, label, pairs, allowed, compress is not None)
        keep(pool.requests, known, request)
        return request

    async def _method(self, target: Target, path: str, protos: Any, message: Any) -> Method | None:
        """None: nobody knows it, and the message is bytes. Raises Failure or BadInput."""
        pool = self._pool
        key = target, path, protos, type(message)
        found = pool.methods.get(key)
        if found is None:
            found = described(path, None if protos is None else Protos.of(protos), message)
            if found is None and not isinstance(message, bytes):
                found = await pool.reflected(self, target, path)
            if found is not None:
                keep(pool.methods, key, found)
        return found

    async def reflect(self, target: Target, path: str) -> Method:
        """Ask the server what it offers. Raises Failure or BadInput."""
        pool = self._pool
        service = path[1:].partition("/")[0]
        gives = answer_type()
        problem = ""
        for package in REFLECTION:
            asked = f"/{package}.ServerReflection/ServerReflectionInfo"
            label = Label("REFLECTION", asked[1:], kind="grpc")
            head = head_of(target, asked, (), pool.timeout, None)
            method = Method(asked, None, gives, True, True)
            request = Request(method, pool.route(target), head, label, (), pool.timeout, False)
            found = Reflected()
            questions = [question(symbol=service)]
            while questions:
                payload = b"".join(request.framed(one) for one in questions)
                call = await self._opened(request, payload, True)
                await self._over(call, call.ask())
                answer = call.answer
                call.connection.connect = answer.connect  # of the first call that counts
                if not answer.ok:
                    problem = answer.error
                    if answer.outcome is not Outcome.STATUS:
                        raise Failure(answer.outcome, answer.error)
                    break
                for told in map(gives.FromString, call.messages):
                    if told.error.code:
                        raise BadInput(
                            f"{target.host_header} has no service {service}: {told.error.message}"
                        )
                    for file in told.files.file:
                        found.add(file)
                questions = [question(file=name) for name in found.missing]
            else:
                return found.method(path)
        raise BadInput(
            f"nobody describes {service}: {target.host_header} has no reflection ({problem})",
            "give protos=Protos('shop.proto'), or import the module that protoc made",
        )

    # -- calls -------------------------------------------------------------------------------------

    async def _opened(self, request: Request, payload: bytes, end: bool) -> GRPCCall:
        """A call with a connection under it. Raises Failure."""
        deadline = perf_counter() + request.timeout
        connection = await self._pool.acquire(self._held, request.route, deadline)
        if self._pool.keeps:
            self._recent = connection
        self._pool.look_by(deadline)
        call = GRPCCall(connection, request, payload, end)
        call.answer.connect, connection.connect = connection.connect, None
        return call

    async def _over(self, call: GRPCCall, waiter: asyncio.Future[None]) -> None:
        """Wait for the end of a call."""
        try:
            await waiter
            while not call.is_over:
                await call.change()
        except BaseException:
            if call.started and not call.is_over:
                cut = failures.given_up()
                call.abort_call(cut)
                note(call.answer.label, call.answer, True)
            else:
                call.abort()
            raise

    def _noted(self, call: GRPCCall) -> GRPCResponse:
        answer = call.answer
        answer.raw_messages = call.messages
        answer.request_bytes = call.payload
        answer.request_metadata = call.request.metadata
        note(answer.label, answer, answer.bytes_out > 0)
        if self._pool.trace is not None:
            self._pool.trace(answer)
        return answer

    async def _unsent(self, request: Request, failure: Failure, began: float) -> GRPCResponse:
        answer = GRPCResponse(request.label, request.target, request.method)
        answer.started = answer.sent = began
        answer.first_byte = answer.ended = perf_counter()
        answer.outcome, answer.error = failure.outcome, failure.error
        await asyncio.sleep(0)  # a loop of calls that fail at once must not stop the others
        note(answer.label, answer, False)
        if self._pool.trace is not None:
            self._pool.trace(answer)
        return answer

    def close(self) -> None:
        """Close this user's connections; shared ones stay for the others."""
        if not self._pool.shares:
            for connection in list(self._held.connections):
                connection.close()
