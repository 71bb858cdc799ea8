"""One request and its response, as a stream of HTTP/3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from hyperscale.clients.http2.exchange import Exchange
from hyperscale.http3.session import error_name
from hyperscale.workload.responses import HTTP3Response
from hyperscale.workload.results import Outcome

if TYPE_CHECKING:
    from hyperscale.clients.http3.connection import Connection

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class QuicExchange(Exchange):
    __slots__ = ()
    response: ClassVar = HTTP3Response

    def __init__(self, connection: Connection) -> None:
        super().__init__(cast(Any, connection))

    @property
    def is_safe(self) -> bool:
        """Whether a server may see it twice."""
        return self.request.method in _SAFE

    def on_room(self, now: float) -> None:
        super().on_room(now)
        if self.outbox is None and self._upload is None:
            self.sent = now

    def on_reset(self, code: int, now: float) -> None:
        text = f"{self.connection.route.where} reset the stream ({error_name(code)})"
        self.fail(Outcome.RESET, text, now)

    def on_refused(self, now: float) -> None:
        if self.connection.http.streams:
            self.connection.http.is_closing = True  # it may go on with what it has begun
        super().on_refused(now)
