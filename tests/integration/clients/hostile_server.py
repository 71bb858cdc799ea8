"""A server that is unkind by the dice, in a process of its own, and counts what reached it.

What it does to a request depends on the seed in its path, so a run can be repeated. It never closes
both directions while a request may still come: it stops sending and reads on until the client is
gone, so that its count is the truth. One thread for each connection, blocking sockets.

`python -m tests.integration.clients.hostile_server` prints its port; each line on its input
is answered with what was seen since the last one, when all connections have ended.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

UNASKED_AT_ONCE = "unasked at once"
UNASKED_LATER = "unasked later"
# Of an answer on a connection where unasked bytes went before: a client that took those for an
# answer takes this one for that to its next request.
BEHIND_UNASKED = "X-Behind-Unasked"
QUIET_SECONDS = 20.0


class Gone(Exception):
    """The client has closed."""


@dataclass
class Tally:
    seen: Counter[str] = field(default_factory=Counter)  # requests by the token in their path
    done: Counter[str] = field(default_factory=Counter)  # what was done to them
    late: int = 0  # came after this side had stopped sending
    torn: int = 0  # ended within a head
    open: int = 0


TALLY = Tally()
LOCK = threading.Lock()


def response(token: str, header: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{header}Content-Length: {len(token)}\r\n\r\n{token}".encode()


class Talk:
    """One connection. `mute`: nothing is sent any more, what comes is counted."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.buffer = b""
        self.mute = False
        self.header = ""

    def run(self) -> None:
        with suppress(Gone, OSError):
            while True:
                self._answer_one()
        self.peer.close()

    def _answer_one(self) -> None:
        head = self.read_head()
        token = head.split(" ")[1].rpartition("/")[2]
        with LOCK:
            TALLY.seen[token] += 1
            TALLY.late += self.mute
        if self.mute:
            self.read_body(head)
            return
        dice = random.Random(token)
        deed = dice.choices(DEEDS, WEIGHTS)[0]
        with LOCK:
            TALLY.done[deed.__name__] += 1
        if deed not in BEFORE_THE_BODY or dice.random() < 0.5:
            self.read_body(head)
            head = ""
        # Half of them have a head that is the same for all.
        named = f"X-Token: {token}\r\n" if dice.random() < 0.5 else ""
        answer = response(token, named + self.header)
        try:
            deed(self, dice, answer, token)
        except OSError:
            self.mute = True  # the client is gone; what it had written before is to be read
        if head:
            self.read_body(head)

    # -- reading ---------------------------------------------------------------------------------

    def read_head(self) -> str:
        while b"\r\n\r\n" not in self.buffer:
            try:
                self.fill()
            except (Gone, OSError):
                with LOCK:
                    TALLY.torn += bool(self.buffer)
                raise
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head.decode("latin-1")

    def read_body(self, head: str) -> None:
        lower = head.lower()
        if "transfer-encoding: chunked" in lower:
            while size := int(self.read_line(), 16):
                self.skip(size + 2)
            self.read_line()
        elif "content-length:" in lower:
            self.skip(int(lower.partition("content-length:")[2].partition("\r\n")[0]))

    def read_line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def skip(self, size: int) -> None:
        while len(self.buffer) < size:
            size -= len(self.buffer)
            self.buffer = b""
            self.fill()
        self.buffer = self.buffer[size:]

    def fill(self) -> None:
        data = self.peer.recv(65536)
        if not data:
            raise Gone
        self.buffer += data

    # -- sending ---------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        self.peer.sendall(data)

    def stop_sending(self) -> None:
        self.mute = True
        self.peer.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        if self.header:
            # A client that took unasked bytes for this answer may have written its next request,
            # which nobody would ever count.
            self.stop_sending()
            return
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone


Deed = Callable[[Talk, random.Random, bytes, str], None]


def normal(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer)


def early(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    """Before the body was read; the connection stays."""
    talk.send(answer)


def slow(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    time.sleep(0.12)
    talk.send(answer)


def in_pieces(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    while answer:
        size = dice.randint(1, len(answer))
        talk.send(answer[:size])
        answer = answer[size:]
        time.sleep(0.001)


def in_chunks(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    half = len(token) // 2
    body = f"{half:x}\r\n{token[:half]}\r\n{len(token) - half:x};x=y\r\n{token[half:]}\r\n0\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\n{talk.header}Transfer-Encoding: chunked\r\n\r\n"
    in_pieces(talk, dice, (head + body).encode(), token)


def hints_first(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    hints = [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"]
    first = b"".join(dice.choices(hints, k=dice.randint(1, 3)))
    if dice.random() < 0.5:
        talk.send(first)
        time.sleep(0.001)
        talk.send(answer)
    else:
        talk.send(first + answer)


def unasked_at_once(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer + response(f"{UNASKED_AT_ONCE} {token}"))


def unasked_later(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer)
    time.sleep(dice.choice((0.0, 0.002, 0.005)))
    talk.send(response(f"{UNASKED_LATER} {token}"))
    talk.header = f"{BEHIND_UNASKED}: yes\r\n"


def close_before(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.stop_sending()


def close_within(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer[: dice.randrange(1, len(answer))])
    talk.stop_sending()


def close_after(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer)
    talk.stop_sending()


def close_while_idle(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer)
    time.sleep(dice.choice((0.0005, 0.002, 0.005)))
    talk.stop_sending()


def ends_the_body(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(f"HTTP/1.1 200 OK\r\n{talk.header}\r\n{token}".encode())
    talk.stop_sending()


def reset_before(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.reset()


def reset_within(talk: Talk, dice: random.Random, answer: bytes, token: str) -> None:
    talk.send(answer[: dice.randrange(1, len(answer))])
    talk.reset()


SHARES: dict[Deed, int] = {
    normal: 38,
    early: 6,
    slow: 5,
    in_pieces: 6,
    in_chunks: 6,
    hints_first: 6,
    unasked_at_once: 5,
    unasked_later: 6,
    close_before: 4,
    close_within: 3,
    close_after: 5,
    close_while_idle: 6,
    ends_the_body: 3,
    reset_before: 3,
    reset_within: 2,
}
DEEDS, WEIGHTS = list(SHARES), list(SHARES.values())
BEFORE_THE_BODY = {early, close_before, reset_before, close_within}


def _serve(listener: socket.socket) -> None:
    def talk(peer: socket.socket) -> None:
        try:
            Talk(peer).run()
        finally:
            with LOCK:
                TALLY.open -= 1

    while True:
        peer = listener.accept()[0]
        with LOCK:
            TALLY.open += 1
        threading.Thread(target=talk, args=(peer,), daemon=True).start()


def _report() -> dict[str, Any]:
    """When nothing is open: what the client closed last may still be on its way through accept."""
    global TALLY
    until = time.monotonic() + QUIET_SECONDS
    quiet = 0
    while quiet < 5:
        quiet = quiet + 1 if TALLY.open == 0 else 0
        assert time.monotonic() < until, f"{TALLY.open} connections are still open"
        time.sleep(0.01)
    ended, TALLY = TALLY, Tally()
    return {"seen": ended.seen, "done": ended.done, "late": ended.late, "torn": ended.torn}


class HostileServer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._said())
        self.url = f"http://127.0.0.1:{self.port}"

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def report(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write("report\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._said())
        return told


@contextmanager
def hostile_server() -> Iterator[HostileServer]:
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield HostileServer(process)
        finally:
            process.kill()


def _main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    say = sys.stdout.write
    say(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        say(json.dumps(_report()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
