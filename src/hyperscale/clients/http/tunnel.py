"""What is said to a proxy before it passes bytes on, without any I/O: CONNECT of an HTTP proxy.

A handshake is driven by whoever has the socket: send what `start` gives, then feed it all that
comes and send what that gives, until `done`; tell it by `end` that the proxy has closed. `error` is
then empty or a sentence for a person. Bytes after the end are an error as well: nobody has spoken
to the target yet, so it has no reason to answer.
"""

from __future__ import annotations

from hyperscale.clients.http.proxy import Proxy
from hyperscale.clients.http.reader import Heads, ResponseReader
from hyperscale.clients.net.failures import Failure
from hyperscale.workload.results import Outcome


class Handshake:
    """SOCKS5 is the other kind."""

    __slots__ = ("_authority", "_proxy", "done", "error", "outcome")

    def __init__(self, proxy: Proxy, authority: str) -> None:
        self._proxy = proxy
        self._authority = authority  # host and port of the target
        self.done = False
        self.error = ""
        self.outcome = Outcome.OK

    def start(self) -> bytes:
        raise NotImplementedError

    def feed(self, data: bytes) -> bytes:
        raise NotImplementedError

    def end(self) -> None:
        if not self.done:
            self.not_understood("closed the connection")

    def failure(self) -> Failure | None:
        return Failure(self.outcome, self.error) if self.error else None

    def refused(self, reason: str) -> None:
        self._fail(
            Outcome.REFUSED,
            f"{self._proxy.name} refused the tunnel to {self._authority}: {reason}",
        )

    def not_understood(self, problem: str) -> None:
        self._fail(
            Outcome.PROTOCOL, f"{self._proxy.name} {problem} when asked for {self._authority}"
        )

    def _fail(self, outcome: Outcome, error: str) -> None:
        self.done = True
        self.outcome = outcome
        self.error = error


class ConnectTunnel(Handshake):
    __slots__ = ("_reader",)

    def __init__(self, heads: Heads, proxy: Proxy, authority: str) -> None:
        super().__init__(proxy, authority)
        self._reader = ResponseReader(heads, bodiless=True)

    def start(self) -> bytes:
        auth = f"Proxy-Authorization: {self._proxy.auth}\r\n" if self._proxy.auth else ""
        where = self._authority
        return f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{auth}\r\n".encode()

    def feed(self, data: bytes) -> bytes:
        reader = self._reader
        reader.feed(data)
        if not reader.done:
            return b""
        self.done = True
        head = reader.head
        if head is None:
            self.not_understood(reader.error)
        elif head.status == 407:
            needs = "a user and password" if not self._proxy.auth else "another user or password"
            self.refused(f"it asks for {needs} (407 {head.reason})".replace(" )", ")"))
        elif not 200 <= head.status < 300:
            self.refused(f"{head.status} {head.reason}".strip())
        elif reader.extra:
            self.not_understood("sent more than its answer")
        return b""

    def end(self) -> None:
        if not self.done:
            self._reader.end()
            self.not_understood(self._reader.error or "closed the connection")
