"""The answer to a call of gRPC, as the author of a test sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hyperscale.workload.replies import Reply
from hyperscale.workload.results import CallFailed, Outcome
from hyperscale.workload.scope import Label
from hyperscale.workload.secrets import mask_header

STATUS_NAMES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)


class MessageTypes(Protocol):
    """Classes of protobuf; None: messages are left as bytes."""

    @property
    def takes(self) -> Any: ...

    @property
    def gives(self) -> Any: ...


class GRPCResponse(Reply):
    """The answer to a call of gRPC: its messages, its status, and what came with them.

    `status` is the code of gRPC, 0 for OK. Messages are read when somebody wants them.
    """

    __slots__ = ("_method", "_read", "metadata", "raw_messages", "request_metadata", "trailers")

    def __init__(self, label: Label, target: str, method: MessageTypes) -> None:
        super().__init__(label, target)
        self._method = method
        self._read: list[Any] | None = None
        self.raw_messages: list[bytes] = []
        self.metadata: Mapping[str, str] = {}
        self.trailers: Mapping[str, str] = {}
        self.request_metadata: tuple[tuple[str, str], ...] = ()

    @property
    def status_name(self) -> str:
        return status_name(self.status)

    @property
    def messages(self) -> list[Any]:
        if self.outcome not in (Outcome.OK, Outcome.FAILED) and not self.raw_messages:
            raise CallFailed(self.outcome, self.error, self)
        if self._read is None:
            read = self._method.gives
            if read is None:
                return list(self.raw_messages)
            self._read = [read.FromString(one) for one in self.raw_messages]
        return self._read

    @property
    def message(self) -> Any:
        """The first one, of most calls the only one."""
        messages = self.messages
        if not messages:
            raise CallFailed(self.outcome, self.error or f"{self} brought no message", self)
        return messages[0]

    def json(self) -> Any:
        """The message as what JSON can hold."""
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(self.message, preserving_proto_field_name=True)

    def text(self) -> str:
        return str(self.message)

    def shown_request(self) -> bytes:
        """The metadata and the first message."""
        lines = [f"{name}: {mask_header(name, value)}" for name, value in self.request_metadata]
        framed = self.request_bytes
        data = framed[5 : 5 + int.from_bytes(framed[1:5], "big")]
        if framed[:1] == b"\1":
            import gzip

            data = gzip.decompress(data)
        takes = self._method.takes
        return "\n".join([*lines, str(takes.FromString(data) if takes else data)]).encode()

    def shown_answer(self) -> bytes:
        came = [*self.metadata.items(), *self.trailers.items()]
        lines = [f"{name}: {mask_header(name, value)}" for name, value in came]
        return "\n".join([*lines, *map(str, self.messages)]).encode()

    def __str__(self) -> str:
        how = self.outcome if self.outcome not in (Outcome.OK, Outcome.STATUS) else self.status_name
        return f"{self.label.method} {self.target} ({how})"


def status_name(code: int) -> str:
    return STATUS_NAMES[code] if 0 <= code < len(STATUS_NAMES) else f"status {code}"
