"""Responses of protocols other than HTTP, as the author of a test sees them.

They have in common what a call is measured by; a protocol adds what its server said.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hyperscale.workload.responses import NO_HEADERS
from hyperscale.workload.results import CallFailed, CallResult, Connect, Outcome, timings_of
from hyperscale.workload.scope import CURRENT, Label


class Reply(CallResult):
    """`target` is what was called, `request_bytes` and `content` what went and what came; `code` is
    the server's word for what is wrong, where it has words and no numbers."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "code",
        "connect",
        "content",
        "ended",
        "error",
        "first_byte",
        "label",
        "outcome",
        "request_bytes",
        "sent",
        "started",
        "status",
        "target",
    )

    def __init__(self, label: Label, target: str) -> None:
        self.label = label
        self.target = target
        self.started = self.sent = self.first_byte = self.ended = 0.0
        self.status = self.bytes_in = self.bytes_out = 0
        self.outcome = Outcome.OK
        self.error = ""
        self.code = ""
        self.connect: Connect | None = None
        self.request_bytes = b""
        self.content = b""

    @property
    def method(self) -> str:
        return self.label.method

    def fail(self, reason: str) -> None:
        went_well = self.outcome is Outcome.OK
        super().fail(reason)
        if went_well:
            CURRENT.get().called_failed(self.label, self)

    def refused(self, error: str, code: str = "") -> None:
        """The server answered that it does not do what was asked."""
        self.outcome = Outcome.STATUS
        self.error = error
        self.code = code

    @property
    def timings(self) -> dict[str, float]:
        """Milliseconds per phase; the phases of connecting only for a call that connected."""
        return timings_of(self)

    def __str__(self) -> str:
        return f"{self.method} {self.target} ({self.status or self.outcome})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"


class TCPResponse(Reply):
    """What a TCP server sent, or the reason why nothing came (`outcome`, `error`)."""

    __slots__ = ()

    @property
    def data(self) -> bytes:
        if self.outcome not in (Outcome.OK, Outcome.FAILED):
            raise CallFailed(self.outcome, self.error, self)
        return self.content

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def json(self) -> Any:
        try:
            return msgspec.json.decode(self.data)
        except msgspec.DecodeError as error:
            raise ValueError(f"{self} has data that is not JSON: {error}") from error


class UDPResponse(TCPResponse):
    """The datagram that came back."""

    __slots__ = ()


class WebSocketResponse(TCPResponse):
    """A message, or how the call went: `status` and `headers` are those of an upgrade, and
    `status` is the server's code where it closed the session."""

    __slots__ = ("headers", "is_binary")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.headers = NO_HEADERS
        self.is_binary = False

    @property
    def message(self) -> str | bytes:
        """Text as text, a binary message as bytes."""
        return self.data if self.is_binary else self.text()


class SSEResponse(TCPResponse):
    """An event: its name in `event`, its `id`, its data; or the head of the stream (`status`,
    `headers`)."""

    __slots__ = ("event", "headers", "id")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.headers = NO_HEADERS
        self.event = self.id = ""


class RedisResponse(Reply):
    """The reply to a command; to a pipeline or transaction, the list of replies."""

    __slots__ = ("_value",)

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self._value: Any = None

    @property
    def value(self) -> Any:
        """Bytes, a number, None or a list of these, as the server sent it."""
        if self.outcome not in (Outcome.OK, Outcome.FAILED, Outcome.STATUS):
            raise CallFailed(self.outcome, self.error, self)
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value

    def show(self) -> None:
        """As bytes, for those who look on."""
        value = self._value
        self.content = value if isinstance(value, bytes) else repr(value).encode()

    def text(self) -> str:
        value = self.value
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def refused(self, error: str, code: str = "") -> None:
        super().refused(error, code or error.partition(" ")[0])
