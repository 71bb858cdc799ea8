"""The requests of a page, from what Chromium's DevTools tell of its network. No I/O.

A request counts when it was written to a socket: redirects each by itself, favicons and preflights
too; answers of a cache or a service worker do not. Chromium's times are of the monotonic clock that
`perf_counter` reads on Linux; elsewhere they are moved there.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from hyperscale.workload.results import Connect, Outcome
from hyperscale.workload.scope import fold_ids

FAVICON = "/favicon.ico"  # asked for by Chromium itself: that there is none is no failure
OPEN_MAX = 10_000  # requests of a page under way
_OUTCOMES = {
    Outcome.DNS: ("NAME_NOT_RESOLVED", "NAME_RESOLUTION_FAILED", "DNS_"),
    Outcome.REFUSED: (
        *("CONNECTION_REFUSED", "ADDRESS_UNREACHABLE", "ADDRESS_INVALID", "CONNECTION_FAILED"),
        *("INTERNET_DISCONNECTED", "NETWORK_ACCESS_DENIED", "UNSAFE_PORT", "PROXY_"),
    ),
    Outcome.RESET: (
        *("CONNECTION_RESET", "CONNECTION_CLOSED", "CONNECTION_ABORTED", "EMPTY_RESPONSE"),
        *("SOCKET_NOT_CONNECTED", "NETWORK_CHANGED", "HTTP2_SERVER_REFUSED_STREAM"),
    ),
    Outcome.TLS: ("CERT_", "SSL_", "BAD_SSL"),
    Outcome.TIMEOUT: ("TIMED_OUT", "CONNECTION_TIMED_OUT"),
    Outcome.CANCELLED: ("ABORTED",),
}


class Exchanged(NamedTuple):
    """A request of a page that is over."""

    method: str
    url: str
    name: str
    is_sent: bool
    status: int
    outcome: Outcome
    error: str
    started: float
    sent: float
    first_byte: float
    ended: float
    bytes_in: int
    bytes_out: int
    connect: Connect | None


class _Open:
    __slots__ = ("begun", "method", "name", "response", "size", "skipped", "url")

    def __init__(self, method: str, url: str, name: str, size: int, begun: float) -> None:
        self.method = method
        self.url = url
        self.name = name
        self.size = size  # of the body
        self.begun = begun
        self.response: Mapping[str, Any] | None = None
        self.skipped = False


class Exchanges:
    """`told` gets each request that is over. `main_name` is for the next document, then gone."""

    def __init__(self, told: Callable[[Exchanged], None]) -> None:
        self._told = told
        self._open: dict[str, _Open] = {}
        self._heads: dict[str, deque[int]] = {}  # sizes of what was written, by request
        self._own_host = ""
        self._main_frame = ""  # that of the first document
        self._shift_s: float | None = 0.0 if sys.platform == "linux" else None
        self.main_name: str | None = None
        self.failed = 0

    @property
    def under_way(self) -> int:
        return len(self._open)

    def will_be_sent(self, event: Mapping[str, Any]) -> None:
        number, request, at = event["requestId"], event["request"], event["timestamp"]
        if self._shift_s is None:
            self._shift_s = event["wallTime"] - at - (time.time() - time.perf_counter())
        known = self._open.get(number)
        if known is not None and "redirectResponse" in event:
            known.response = event["redirectResponse"]
            known.skipped = known.skipped or _from_cache(known.response)
            self._finish(number, at, known.response.get("encodedDataLength", 0))
        url = request["url"]
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or len(self._open) >= OPEN_MAX:
            return
        is_main = event.get("type") == "Document" and self._main_frame in ("", event["frameId"])
        if is_main:
            self._main_frame = event["frameId"]
            self._own_host = parts.netloc
        name = fold_ids(parts.path or "/")
        if parts.netloc != self._own_host:
            name = parts.netloc + name
        if is_main and self.main_name is not None:
            name, self.main_name = self.main_name, None
        size = len(request.get("postData", ""))
        self._open[number] = _Open(request["method"], url, name, size, at)

    def was_sent(self, event: Mapping[str, Any]) -> None:
        """Its head left; this may come before or after the others."""
        head = sum(len(name) + len(str(value)) + 4 for name, value in event["headers"].items())
        known = self._heads.setdefault(event["requestId"], deque(maxlen=32))
        known.append(head)
        while len(self._heads) > OPEN_MAX:
            del self._heads[next(iter(self._heads))]

    def of_cache(self, event: Mapping[str, Any]) -> None:
        known = self._open.get(event["requestId"])
        if known is not None:
            known.skipped = True

    def answered(self, event: Mapping[str, Any]) -> None:
        known = self._open.get(event["requestId"])
        if known is not None:
            known.response = event["response"]
            known.skipped = known.skipped or _from_cache(event["response"])

    def finished(self, event: Mapping[str, Any]) -> None:
        self._finish(event["requestId"], event["timestamp"], event.get("encodedDataLength", 0))

    def broke(self, event: Mapping[str, Any]) -> None:
        error = event.get("errorText") or "it failed"
        outcome = outcome_of(error)
        # That its head left may be told later than that nothing came back.
        if outcome in (Outcome.RESET, Outcome.PROTOCOL) and "blockedReason" not in event:
            self._heads.setdefault(event["requestId"], deque([0]))
        self._finish(event["requestId"], event["timestamp"], 0, outcome, error)

    def cut(self, outcome: Outcome, error: str) -> None:
        """Nobody waits any longer for what is under way."""
        now = time.perf_counter() - (self._shift_s or 0.0)
        for number in list(self._open):
            self._finish(number, now, 0, outcome, error)

    def _finish(
        self,
        number: str,
        ended: float,
        bytes_in: float,
        outcome: Outcome = Outcome.OK,
        error: str = "",
    ) -> None:
        known, heads = self._open.pop(number, None), self._heads.get(number)
        written = heads.popleft() if heads else None
        if not heads:
            self._heads.pop(number, None)
        if known is None or known.skipped:
            return
        response = known.response or {}
        timing = response.get("timing")
        is_sent = bool(timing) or written is not None
        if not is_sent and outcome is Outcome.CANCELLED:
            return  # the page thought better of it
        status = int(response.get("status", 0))
        if outcome is Outcome.OK and status >= 400 and known.name != FAVICON:
            outcome = Outcome.STATUS
            error = f"{status} {response.get('statusText', '')}".strip()
        if outcome is not Outcome.OK:
            self.failed += 1
        shift = self._shift_s or 0.0
        started, sent, first, connect = _times(timing, known.begun, ended)
        line = len(known.method) + len(urlsplit(known.url).path) + 12
        self._told(
            Exchanged(
                known.method,
                known.url,
                known.name,
                is_sent,
                status,
                outcome,
                error,
                started + shift,
                sent + shift,
                first + shift,
                max(ended, first) + shift,
                int(bytes_in),
                (written or 0) + line + known.size if is_sent else 0,
                connect,
            )
        )


def outcome_of(error: str) -> Outcome:
    """What a net error of Chromium means."""
    word = error.removeprefix("net::ERR_")
    for outcome, beginnings in _OUTCOMES.items():
        if word.startswith(beginnings):
            return outcome
    return Outcome.PROTOCOL


def _from_cache(response: Mapping[str, Any]) -> bool:
    return any(
        response.get(name) for name in ("fromDiskCache", "fromServiceWorker", "fromPrefetchCache")
    )


def _times(
    timing: Mapping[str, float] | None, begun: float, ended: float
) -> tuple[float, float, float, Connect | None]:
    """When it was written, all of it, and answered; and how connecting went, if it did."""
    if not timing:
        return begun, begun, ended, None
    at = timing["requestTime"]
    started = at + timing["sendStart"] / 1e3
    sent = at + timing["sendEnd"] / 1e3
    first_ms = timing.get("receiveHeadersStart", 0.0) or timing["receiveHeadersEnd"]
    connect = None
    if timing["connectStart"] >= 0:
        secured = max(timing["sslEnd"] - timing["sslStart"], 0.0)
        opened = timing["connectEnd"] - timing["connectStart"] - secured
        looked = max(timing["dnsEnd"] - timing["dnsStart"], 0.0)
        connect = Connect(looked / 1e3, max(opened, 0.0) / 1e3, secured / 1e3)
    return started, sent, max(at + first_ms / 1e3, sent), connect
