"""Messages of a call that go one after another: all that an author has, or as the author likes."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

from hyperscale.clients.grpc.call import GRPCCall, Request
from hyperscale.clients.grpc.methods import encoded
from hyperscale.workload.grpc_response import GRPCResponse
from hyperscale.workload.results import CallFailed


class BidiStream:
    """A stream that is open: messages go and come in the order that the author likes."""

    def __init__(self, request: Request | GRPCResponse) -> None:
        self.call: GRPCCall | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.made = request if isinstance(request, GRPCResponse) else None
        self._request = request
        self._has_ended = False

    @property
    def response(self) -> GRPCResponse:
        """How the call went; complete when the block is left."""
        if self.made is not None:
            return self.made
        assert self.call is not None
        return self.call.answer

    async def send(self, message: Any) -> None:
        """Raises CallFailed when the call is over."""
        call = self._open()
        await call.send(
            call.request.framed(encoded(call.request.method, message)), False, perf_counter()
        )

    async def receive(self) -> Any:
        """The next message; None when the server has ended the call."""
        call = self._open(may_be_over=True)
        while True:
            data = call.take()
            if data is not None:
                gives = call.request.method.gives
                return data if gives is None else gives.FromString(data)
            if call.is_over:
                if not call.answer.ok:
                    raise CallFailed(call.answer.outcome, call.answer.error, call.answer)
                return None
            await call.change()

    async def end(self) -> None:
        """Nothing more is sent; what the server still has to say can be received."""
        call = self._open(may_be_over=True)
        if not self._has_ended:
            self._has_ended = True
            await call.send(b"", True, perf_counter())

    async def finish(self) -> None:
        assert self.call is not None
        await self.end()
        while not self.call.is_over:
            await self.call.change()

    def _open(self, may_be_over: bool = False) -> GRPCCall:
        call = self.call
        if call is None or (call.is_over and not may_be_over):
            answer = self.response
            raise CallFailed(answer.outcome, answer.error or "the call is over", answer)
        return call


async def send_all(call: GRPCCall, messages: Any) -> None:
    request = call.request

    async def send(message: Any) -> None:
        await call.send(request.framed(encoded(request.method, message)), False, perf_counter())

    try:
        if hasattr(messages, "__aiter__"):
            async for message in messages:
                await send(message)
        else:
            for message in messages:
                await send(message)
                await asyncio.sleep(0)
    except BaseException as error:
        if not isinstance(error, asyncio.CancelledError):
            call.abort_call()
        raise
    await call.send(b"", True, perf_counter())
