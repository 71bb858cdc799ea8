"""Responses of protocols other than HTTP, as the author of a test sees them.

They have in common what a call is measured by; a protocol adds what its server said.
"""

from __future__ import annotations

from collections.abc import Mapping
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

    def shown_request(self) -> bytes:
        """What went, for people."""
        return self.request_bytes

    def shown_answer(self) -> bytes:
        return self.content

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


class SQLResponse(TCPResponse):
    """Rows, how many there were, and the server's own words for what it did."""

    __slots__ = ("row_count", "rows", "told")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.rows: list[Any] = []
        self.row_count = 0
        self.told = ""

    @property
    def value(self) -> Any:
        """The first column of the first row; None without one."""
        if self.outcome not in (Outcome.OK, Outcome.FAILED):
            raise CallFailed(self.outcome, self.error, self)
        return self.rows[0][0] if self.rows else None


class PostgresResponse(SQLResponse):
    """A row is told by position or by name (`row["id"]`); the words are such as `INSERT 0 1`."""

    __slots__ = ()

    def tell(self, told: str) -> None:
        self.told = told
        last = told.rpartition(" ")[2]
        self.row_count = int(last) if last.isdecimal() else 0


class MySQLResponse(SQLResponse):
    """A row is a tuple, told by position; `columns` are their names, `last_id` is the number that
    the server gave to a new row."""

    __slots__ = ("columns", "last_id")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.columns: tuple[str, ...] = ()
        self.last_id = 0


class MongoDBResponse(TCPResponse):
    """`reply` is what the server answered, `documents` are those that a query found, `count` is how
    many were found, inserted, matched or deleted."""

    __slots__ = ("count", "documents", "reply")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.reply: dict[str, Any] = {}
        self.documents: list[dict[str, Any]] = []
        self.count = 0

    @property
    def document(self) -> dict[str, Any] | None:
        """The first one; None without one."""
        if self.outcome not in (Outcome.OK, Outcome.FAILED):
            raise CallFailed(self.outcome, self.error, self)
        return self.documents[0] if self.documents else None


class GraphQLResponse(Reply):
    """`data` and `errors` of the answer; `http` is the response that carried it."""

    __slots__ = ("_data", "errors", "http", "session")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self._data: Any = None
        self.errors: list[Any] = []
        self.http: Any = None
        self.session: Any = None  # of a subscription

    @property
    def data(self) -> Any:
        if self.outcome not in (Outcome.OK, Outcome.FAILED, Outcome.STATUS):
            raise CallFailed(self.outcome, self.error, self)
        return self._data

    def text(self) -> str:
        if self.outcome not in (Outcome.OK, Outcome.FAILED, Outcome.STATUS):
            raise CallFailed(self.outcome, self.error, self)
        return self.content.decode("utf-8", "replace")

    def take(self, body: bytes) -> None:
        """The answer of a server, which may fail by its errors or by its status."""
        self.content = body
        try:
            result = msgspec.json.decode(body)
        except msgspec.DecodeError:
            result = None
        if not isinstance(result, dict) or not ("data" in result or "errors" in result):
            bad = self.status >= 400
            self.outcome = Outcome.STATUS if bad else Outcome.PROTOCOL
            self.error = f"{self.target} answered {self.status} with something that is not GraphQL"
            return
        self.take_result(result)
        if self.ok and self.status >= 400:
            self.refused(f"{self.status} without errors of GraphQL")

    def take_result(self, result: Any) -> None:
        told = result if isinstance(result, dict) else {}
        self._data = told.get("data")
        errors = told.get("errors")
        if errors:
            self.errors = errors if isinstance(errors, list) else [errors]
            first = self.errors[0] if isinstance(self.errors[0], dict) else {}
            extensions = first.get("extensions")
            code = extensions.get("code", "") if isinstance(extensions, dict) else ""
            self.refused(str(first.get("message", self.errors[0]))[:1000], str(code) or "errors")


class MessageResponse(TCPResponse):
    """A message of a broker, or what became of one that was sent. `latency_ms` is how long it took
    from one to the other, None where its headers do not say."""

    __slots__ = ("headers", "latency_ms", "topic")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.topic = ""
        self.headers: Mapping[str, str] = {}
        self.latency_ms: float | None = None

    def shown_request(self) -> bytes:
        return b"\n".join(filter(None, (self.topic.encode(), self.request_bytes)))


class KafkaResponse(MessageResponse):
    """A record and where it is; `status` is the code of the broker's error."""

    __slots__ = ("key", "offset", "partition")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.key = b""
        self.offset = self.partition = -1


class MQTTResponse(MessageResponse):
    """`status` is the broker's reason code, `headers` are user properties."""

    __slots__ = ()


class NATSResponse(MessageResponse):
    """`topic` is the subject; `reply_to` where the sender waits for a reply; `stream` and
    `sequence` where JetStream stored the message."""

    __slots__ = ("reply_to", "sequence", "stream")

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.reply_to = self.stream = ""
        self.sequence = 0


class RabbitMQResponse(MessageResponse):
    """`topic` is the routing key; `status` the code of what the server refused."""

    __slots__ = ()


class SMTPResponse(TCPResponse):
    """The server's last words; `status` is their code, `refused_recipients` what it said of
    whom."""

    __slots__ = ("refused_recipients",)

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.refused_recipients: dict[str, str] = {}


class FileResponse(TCPResponse):
    """What was in a file (`data`), or the `names` that a folder has or that were sent."""

    __slots__ = ("names",)

    def __init__(self, label: Label, target: str) -> None:
        super().__init__(label, target)
        self.names: list[str] = []


class FTPResponse(FileResponse):
    """`status` is the code of the server's last reply."""

    __slots__ = ()


class SFTPResponse(FileResponse):
    __slots__ = ()


class SCPResponse(FileResponse):
    __slots__ = ()
