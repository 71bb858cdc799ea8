"""What a measured step returns: how the call went and when.

The engine records a result by reading these attributes and keeps nothing else of it. Times are
`time.perf_counter()` seconds of the process that made the call, so only differences mean anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from time import perf_counter
from typing import Any


class Outcome(StrEnum):
    OK = "ok"
    STATUS = "status"  # an answer came and its status says failure
    DNS = "dns"
    REFUSED = "refused"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    PROTOCOL = "protocol"
    CANCELLED = "cancelled"
    EXCEPTION = "exception"  # the step's own code raised
    FAILED = "failed"  # the author called the result a failure


# Outcomes that end without an answer in less time than an answer takes: their duration is not a
# latency of the target and stays out of the latency histograms. Timeouts stay in.
WITHOUT_LATENCY = frozenset({Outcome.DNS, Outcome.REFUSED, Outcome.TLS, Outcome.CANCELLED})


class CallFailed(Exception):
    """Raised when the author reads the body of a call that never got an answer."""

    def __init__(self, outcome: Outcome, message: str, result: CallResult | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.result = result


class Connect:
    """How long the phases before the request took, for a call that opened its own connection."""

    __slots__ = ("connect_s", "dns_s", "tls_s")

    def __init__(self, dns_s: float = 0.0, connect_s: float = 0.0, tls_s: float = 0.0) -> None:
        self.dns_s = dns_s
        self.connect_s = connect_s
        self.tls_s = tls_s


class CallResult:
    """Base of every protocol's response. A step annotated with a subclass is a measured test.

    It has no attributes of its own, so that a subclass may be made the cheapest way there is.
    """

    __slots__ = tuple[str, ...]()  # said in a way that mypy does not hold against subclasses

    started: float
    sent: float  # the request was handed to the operating system
    first_byte: float
    ended: float
    status: int  # the protocol's own code, 0 where there is none
    bytes_in: int
    bytes_out: int
    outcome: Outcome
    error: str  # sentence for a person when outcome is not OK, else ""
    connect: Connect | None  # set when this call opened a connection

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    def fail(self, reason: str) -> None:
        """Count this call as failed although the protocol says it went well."""
        self.outcome = Outcome.FAILED
        self.error = reason

    def accept(self) -> None:
        """Count this call as passed although its status says failure (an expected 404).

        To be called in the step that made the call: when that ends its failures are counted."""
        self.outcome = Outcome.OK
        self.error = ""


def timings_of(result: CallResult) -> dict[str, float]:
    phases = {}
    if result.connect is not None:
        phases["dns"] = result.connect.dns_s * 1e3
        phases["connect"] = result.connect.connect_s * 1e3
        phases["tls"] = result.connect.tls_s * 1e3
    phases["write"] = (result.sent - result.started) * 1e3
    phases["wait"] = (result.first_byte - result.sent) * 1e3
    phases["read"] = (result.ended - result.first_byte) * 1e3
    phases["total"] = sum(phases.values())
    return phases


class CustomResult(CallResult):
    """Base for results of your own client: subclass it, return it from a step, and it is measured.

    The engine takes the duration of the whole step unless you say it: `started` and `ended`
    (`time.perf_counter()`), or `timings` in seconds, of which `total` is the duration. Fields that
    a subclass annotates are keywords too; `successful` and `context()` may be its own.
    """

    __slots__ = ("__dict__",)

    def __init__(
        self,
        *,
        ok: bool = True,
        error: str = "",
        status: int = 0,
        bytes_in: int = 0,
        bytes_out: int = 0,
        started: float = 0.0,
        ended: float = 0.0,
        timings: Mapping[str, float] | None = None,
        **fields: Any,
    ) -> None:
        self.started = self.sent = started
        self.first_byte = ended
        self.ended = ended
        self.status = status
        self.bytes_in = bytes_in
        self.bytes_out = bytes_out
        self.outcome = Outcome.OK if ok else Outcome.FAILED
        self.error = error
        self.connect = None
        if timings is not None:
            self._take(timings)
        if fields:
            known = {name for kind in type(self).__mro__ for name in kind.__dict__.get(_HINTS, ())}
            for name, value in fields.items():
                if name not in known:
                    raise TypeError(f"{type(self).__name__} has no field {name!r}")
                setattr(self, name, value)

    def _take(self, timings: Mapping[str, float]) -> None:
        unknown = set(timings) - {"total", "connecting", "writing", "reading"}
        if unknown:
            raise TypeError(
                f"timings has {min(unknown)!r} but takes total, connecting, writing "
                "and reading, in seconds"
            )
        connecting = timings.get("connecting", 0.0)
        if connecting:
            self.connect = Connect(connect_s=connecting)
        if "total" in timings:
            self.ended = perf_counter()
            self.started = self.ended - timings["total"] + connecting
            self.sent = self.started + timings.get("writing", 0.0)
            self.first_byte = max(self.sent, self.ended - timings.get("reading", 0.0))

    @property
    def successful(self) -> bool:
        return self.outcome is Outcome.OK

    def context(self) -> Any:
        """What is told of a result that is not `successful`."""
        return self.error or "the result is not successful"

    def conclude(self) -> None:
        """Called by the engine before the result is counted."""
        if self.outcome is Outcome.OK and not self.successful:
            self.fail(str(self.context()))


_HINTS = "__annotations__"
