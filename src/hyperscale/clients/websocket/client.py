"""WebSocket: sessions that live as long as their user, with messages both ways.

A virtual user has one session for each URL. The upgrade is a call of its own, made by the first one
that needs it. Pings of the server are answered whatever the user does.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from os import urandom
from time import perf_counter
from typing import Any, ClassVar

from hyperscale.clients.contract import Call, ProtocolClient
from hyperscale.clients.http_stream import HTTPStreamPool
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.payload import payload_of
from hyperscale.clients.websocket.session import DEFLATE, Message, Session
from hyperscale.errors import BadInput
from hyperscale.websocket_frames import BINARY, GOING_AWAY, NORMAL, TEXT, accept_of, closing
from hyperscale.workload.arguments import URL
from hyperscale.workload.headers import TOKEN
from hyperscale.workload.replies import WebSocketResponse
from hyperscale.workload.results import Outcome
from hyperscale.workload.scope import Label
from hyperscale.workload.texts import shown

Matching = str | bytes | re.Pattern[str] | re.Pattern[bytes] | Callable[[Any], Any] | None
"""Which message is waited for: one that contains this, that the pattern meets, for which the
function (of text or bytes) says so; None: whichever comes first."""

Talk = Callable[["Session", Call, WebSocketResponse], Awaitable[None]]

_UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}


class WebSocketPool(HTTPStreamPool):
    kind = "ws"
    schemes: ClassVar = {"ws": "http", "wss": "https"}
    asks_for: ClassVar = _UPGRADE

    def client(self) -> WebSocketClient:
        return WebSocketClient(self)


class WebSocketClient(ProtocolClient[WebSocketPool]):
    def __init__(self, pool: WebSocketPool) -> None:
        super().__init__(pool)
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()

    async def connect(
        self,
        url: str | URL,
        *,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        auth: Any = None,
        subprotocols: Sequence[str] = (),
        compress: bool = False,
        timeout: Any = None,
        name: str | None = None,
    ) -> WebSocketResponse:
        """Open the session anew; other calls open it, without these arguments, by themselves."""
        pool = self._pool
        request = pool.request(url, "GET", params, headers, cookies, auth, name)
        key = b64encode(urandom(16))
        asked = b"".join((request.wire[:-2], _offers(key, subprotocols, compress), b"\r\n"))
        self._drop(str(url))

        async def talk(call: Call, answer: WebSocketResponse) -> None:
            sock, call.connect = await pool.open(request)
            began = perf_counter()
            session = Session(pool, request, sock)
            try:
                call.begin()
                await session.transmit(call, asked)
                head = await session.answered()
                call.got(session.head_bytes, session.head_at, session.head_at)
                answer.status, answer.headers = head.status, head.headers
                session.upgrade(head, accept_of(key), subprotocols, compress)
            except BaseException:
                session.shut()
                raise
            self._drop(str(url))
            self._sessions[str(url)] = session
            phases = call.connect
            opening_s = phases.dns_s + phases.connect_s + phases.tls_s + session.head_at - began
            session.scope.measure("ws_connecting", "distribution", opening_s * 1e3)
            session.scope.measure("ws_sessions", "count", 1)

        make = partial(_response, request.route.authority, asked)
        return await self.call("CONNECT", request.label.name, make, talk, timeout)

    async def send(
        self, url: str | URL, data: Any, *, timeout: Any = None, name: str | None = None
    ) -> WebSocketResponse:
        """Send a message: text as text, bytes as a binary one, anything else as JSON."""
        kind, sent = _message(data)

        async def talk(session: Session, call: Call, answer: WebSocketResponse) -> None:
            call.begin()
            await session.send_message(call, kind, sent)

        return await self._on("SEND", url, talk, timeout, name, sent)

    async def receive(
        self, url: str | URL, *, timeout: Any = None, name: str | None = None
    ) -> WebSocketResponse:
        """The next message."""
        return await self._receive("RECEIVE", url, None, timeout, name)

    async def expect(
        self, url: str | URL, matching: Matching, *, timeout: Any = None, name: str | None = None
    ) -> WebSocketResponse:
        """The next message that matches; those before it are passed over."""
        return await self._receive("EXPECT", url, _matcher(matching), timeout, name)

    async def _receive(
        self,
        method: str,
        url: str | URL,
        matches: Callable[[Message], Any] | None,
        timeout: Any,
        name: str | None,
    ) -> WebSocketResponse:
        async def talk(session: Session, call: Call, answer: WebSocketResponse) -> None:
            call.begin()
            await session.receive(call, matches, answer)

        # What does not come in time may still come: the session stays.
        return await self._on(method, url, talk, timeout, name, keeps=True)

    async def request(
        self,
        url: str | URL,
        data: Any,
        *,
        matching: Matching = None,
        timeout: Any = None,
        name: str | None = None,
    ) -> WebSocketResponse:
        """Send a message and wait for its answer: the next message, or the next that matches.
        Requests made at the same time wait for each other unless they say what matches."""
        kind, sent = _message(data)
        matches = None if matching is None else _matcher(matching)

        async def talk(session: Session, call: Call, answer: WebSocketResponse) -> None:
            await session.exchange(call, kind, sent, matches, answer)

        return await self._on("REQUEST", url, talk, timeout, name, sent)

    async def ping(
        self, url: str | URL, *, timeout: Any = None, name: str | None = None
    ) -> WebSocketResponse:
        """Send a ping and wait for its pong."""

        async def talk(session: Session, call: Call, answer: WebSocketResponse) -> None:
            call.begin()
            await session.ping(call)

        return await self._on("PING", url, talk, timeout, name)

    async def close(  # type: ignore[override]  # a session; `user_ended` closes all of them
        self,
        url: str | URL,
        *,
        code: int = NORMAL,
        reason: str = "",
        timeout: Any = None,
        name: str | None = None,
    ) -> WebSocketResponse:
        """Say goodbye and wait for the server's; nothing happens without a session."""
        if str(url) not in self._sessions:
            request = self._pool.request(url, name=name)
            label = self._pool.label("CLOSE", request.label.name)
            return WebSocketResponse(label, request.route.authority)
        payload = closing(code, reason)

        async def talk(session: Session, call: Call, answer: WebSocketResponse) -> None:
            call.begin()
            answer.status = await session.say_goodbye(call, payload)

        try:
            return await self._on("CLOSE", url, talk, timeout, name, payload)
        finally:
            self._drop(str(url))

    async def _on(
        self,
        method: str,
        url: str | URL,
        talk: Talk,
        timeout: Any,
        name: str | None,
        sent: bytes = b"",
        keeps: bool = False,
    ) -> WebSocketResponse:
        """A call on the session with that URL; `keeps` it when the time of the call is over."""
        key = str(url)
        session = self._sessions.get(key)
        if session is None:
            async with self._opening:
                if key not in self._sessions:
                    opened = await self.connect(url, timeout=timeout, name=name)
                    if not opened.ok:
                        return opened
                session = self._sessions[key]

        async def on_session(call: Call, answer: WebSocketResponse) -> None:
            try:
                await talk(session, call, answer)
            except Failure:
                answer.status = session.close_code
                raise

        make = partial(_response, session.where, sent)
        try:
            answer = await self.call(method, name or session.name, make, on_session, timeout)
        except BaseException:
            if not keeps:
                self._drop(key)
            raise
        if not answer.ok and not (keeps and answer.outcome is Outcome.TIMEOUT):
            self._drop(key)
        return answer

    def _drop(self, key: str) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.leave(GOING_AWAY)

    def user_ended(self) -> None:
        for key in list(self._sessions):
            self._drop(key)


def _response(target: str, sent: bytes, label: Label) -> WebSocketResponse:
    made = WebSocketResponse(label, target)
    made.request_bytes = sent
    return made


def _offers(key: bytes, subprotocols: Sequence[str], compress: bool) -> bytes:
    lines = b"Sec-WebSocket-Key: %b\r\n" % key
    if isinstance(subprotocols, str) or not all(
        isinstance(one, str) and TOKEN.fullmatch(one) for one in subprotocols
    ):
        raise BadInput(
            f"subprotocols are {shown(subprotocols)} but must be words", 'write ("chat",)'
        )
    if subprotocols:
        lines += f"Sec-WebSocket-Protocol: {', '.join(subprotocols)}\r\n".encode()
    if compress:
        lines += f"Sec-WebSocket-Extensions: {DEFLATE}\r\n".encode()
    return lines


def _message(data: Any) -> tuple[int, bytes]:
    return (BINARY if isinstance(data, bytes) else TEXT), payload_of(data)


def _matcher(matching: Matching) -> Callable[[Message], Any]:
    if isinstance(matching, str | bytes):
        wanted = matching.encode() if isinstance(matching, str) else matching
        return lambda message: wanted in message[1]
    if isinstance(matching, re.Pattern):
        if isinstance(matching.pattern, str):
            return lambda message: matching.search(message[1].decode("utf-8", "replace"))
        return lambda message: matching.search(message[1])
    if callable(matching):
        return lambda message: matching(message[1] if message[0] == BINARY else message[1].decode())
    raise BadInput(
        f"matching is {shown(matching)} but must be a text, a pattern or a function",
        're.compile("order (\\d+)") or lambda text: "done" in text',
    )
