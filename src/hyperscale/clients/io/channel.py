"""A connected socket that a protocol reads and writes without waiting, plain or with TLS.

A protocol's connection is a Channel that says what to do with what arrives. TLS is OpenSSL on the
socket itself: one read is one record, and nothing is copied through buffers in memory.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import struct
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, cast

from hyperscale.clients.io.readiness import Readiness

RECEIVE_BYTES = 64 * 1024
RECEIVE_BYTES_MAX = 1024 * 1024
# What Python's allocator for small objects has room for: a third of the time of a longer read.
RECEIVE_BYTES_SMALL = 512 - 33
RECORD_BYTES = 16 * 1024  # what a TLS record can hold; a read of less may leave a rest unheard of
SEND_BYTES = 256 * 1024  # handed over at once
# In one turn, so that a long body does not keep the others waiting.
SENDS = 8
READS = 8

# Nothing to read, or no room to write, now.
NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# The peer is gone without the farewell that TLS wants: as most servers do.
_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
# Python calls a reset below TLS an end as well; OpenSSL gives only the end a reason, since 3.0.
_TELLS_RESETS = ssl.OPENSSL_VERSION_INFO >= (3,)
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


def _closed(_: object) -> Any:
    raise OSError(errno.EBADF, "the connection is closed")


class Channel:
    """`unsent`: what the socket did not take yet of what was written."""

    __slots__ = ("_fd", "_receive", "_receive_bytes", "_socket", "readiness", "send", "unsent")

    def open(self, readiness: Readiness, sock: socket.socket) -> None:
        self.readiness = readiness
        self._socket = sock
        self._fd = sock.fileno()
        self.unsent: memoryview | None = None
        if isinstance(sock, ssl.SSLSocket):
            # Below the wrappers of SSLSocket, which take longer than OpenSSL does.
            secured = cast(Any, sock)._sslobj
            self._receive, self.send = secured.read, secured.write
            self._receive_bytes = RECORD_BYTES
        else:
            self._receive, self.send = sock.recv, sock.send
            self._receive_bytes = RECEIVE_BYTES
        readiness.watch(self._fd, self.readable)

    # -- what a protocol says ---------------------------------------------------------------------

    def received(self, data: bytes, now: float) -> None:
        raise NotImplementedError

    def ended(self, error: OSError | None) -> None:
        """Nothing more will come: the peer closed its side, or the connection broke."""
        raise NotImplementedError

    def drained(self, now: float) -> None:
        """Some of what was unsent has gone; all of it when `unsent` is None."""

    # -- what the readiness core calls -----------------------------------------------------------

    def readable(self) -> None:
        receive = self._receive
        try:
            data = receive(self._receive_bytes)
        except OSError as error:
            self.unreadable(error)
            return
        if data:
            self.received(data, perf_counter())
            if len(data) == self._receive_bytes:
                self._read_on()
        else:
            self.ended(None)

    def receive_into(self, room: memoryview) -> int:
        """How much of it was received; 0: the peer has closed. Raises as reading does."""
        if not isinstance(self._socket, ssl.SSLSocket):
            return self._socket.recv_into(room)
        at = 0
        for _ in range(READS):  # a record each
            try:
                count = cast(int, self._receive(len(room) - at, room[at:]))
            except OSError as error:
                if not at:
                    raise
                # What came before it comes first; it may not be told again.
                self.readiness.soon(partial(self.unreadable, error))
                break
            if not count and at:
                self.readiness.soon(partial(self.ended, None))
            at += count
            if count < RECORD_BYTES or at == len(room):
                break
        return at

    @property
    def has_more(self) -> bool:
        """Whether TLS holds bytes that were not read, of which the readiness core cannot know."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def unreadable(self, error: OSError) -> None:
        """Reading raised: nothing is there yet, or the connection is over."""
        if isinstance(error, NOT_NOW):
            return
        if isinstance(error, ssl.SSLEOFError) and not error.reason and _TELLS_RESETS:
            error = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        self.ended(None if isinstance(error, _ENDED) else error)

    def _read_on(self) -> None:
        """It was full to the brim: there is probably more, or the end."""
        size = max(self._receive_bytes, RECEIVE_BYTES)
        for _ in range(READS):
            if self._fd < 0:
                return
            try:
                data = self._receive(size)
            except OSError as error:
                self.unreadable(error)
                return
            if not data:
                self.ended(None)
                return
            self.received(data, perf_counter())

    def writable(self) -> None:
        rest = self.unsent
        broken = False
        try:
            for _ in range(SENDS):
                if rest is None:
                    break
                sent = self.send(rest[:SEND_BYTES])
                rest = rest[sent:] if sent < len(rest) else None
        except ssl.SSLWantReadError:
            # A new handshake, which TLS 1.2 has: until the peer goes on, room to write is no use.
            self.readiness.unwatch_writes(self._fd)
            self.readiness.watch(self._fd, self._readable_at_last)
        except NOT_NOW:
            pass
        except OSError:
            # It may have answered before it stopped reading: the read tells how it ended.
            broken = True
        if rest is None or broken:
            self.readiness.unwatch_writes(self._fd)
        if rest is not self.unsent:
            self.unsent = rest
            self.drained(perf_counter())

    def _readable_at_last(self) -> None:
        self.readiness.watch(self._fd, self.readable)
        self.readable()
        if self.unsent is not None:
            self.readiness.watch_writes(self._fd, self.writable)

    # -- writing and closing ---------------------------------------------------------------------

    def write(self, data: bytes) -> bool:
        """Whether all of it was handed to the operating system; the rest follows by itself.

        Raises OSError when the connection is broken.
        """
        size = len(data)
        try:
            sent = self.send(data if size <= SEND_BYTES else memoryview(data)[:SEND_BYTES])
        except NOT_NOW:
            sent = 0
        if sent == size:
            return True
        self.send_later(memoryview(data)[sent:])
        return False

    def send_later(self, rest: memoryview) -> None:
        """When the socket takes more."""
        self.unsent = rest
        self.readiness.watch_writes(self._fd, self.writable)

    @property
    def session(self) -> ssl.SSLSession | None:
        """Of TLS, by which a later connection may spare itself most of the handshake."""
        return self._socket.session if isinstance(self._socket, ssl.SSLSocket) else None

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def shut(self) -> None:
        """Close the socket; a TLS peer is told so. Harmless when it is closed already."""
        if self._fd < 0:
            return
        self.readiness.forget(self._fd)
        self._fd = -1
        # OpenSSL knows the descriptor by its number, which may soon be another connection's.
        self.send = self._receive = _closed
        if self.unsent is not None:
            # The kernel would go on sending it to a peer that may never read it.
            self.unsent = None
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        elif isinstance(self._socket, ssl.SSLSocket):
            with suppress(OSError, ValueError):
                cast(Any, self._socket)._sslobj.shutdown()
        self._socket.close()
