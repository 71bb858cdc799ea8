"""Which sockets are ready: one epoll for all connections of a process, inside the running loop.

The event loop watches the epoll's descriptor only. A turn receives and stamps everything that is
ready; the users who wait for it run after that, and then what they ask for is written together
(docs/decisions/0025). So no user's code runs between the arrival of an answer and its time stamp,
and a target that sleeps is woken once for many requests.

Where there is no epoll, or HYPERSCALE_READINESS=asyncio says so, the loop watches each socket
itself: the same calls, slower.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Protocol

from hyperscale.errors import BadInput

# Sockets read in one turn: enough to spread its two system calls over, few enough that timers and
# other code of the loop wait for a millisecond at most.
BATCH = 128
SETTING = "HYPERSCALE_READINESS"

_IN, _OUT = 1, 4  # EPOLLIN and EPOLLOUT, which are not there on every system
Callback = Callable[[], None]


class Outgoing(Protocol):
    def readable(self) -> None: ...

    def transmit(self, now: float) -> float:
        """Write; given the time, and giving the time after that."""
        ...


class Readiness:
    """Calls `readable` and `writable` of the sockets it was given, from the event loop.

    Several may be called in one turn, also one that another has just made useless: a callback
    must bear being called when there is nothing to read.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._readers: dict[int, Callback] = {}
        self._writers: dict[int, Callback] = {}
        self.outgoing: list[Outgoing] = []  # of this turn of the loop, not yet written
        self._read_first = 0  # sockets, since what is outgoing was to be written
        self._ready_most = 0

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> Readiness:
        """The one of this event loop: all clients of a process share it."""
        known = _of_loop.get(loop)
        if known is None:
            for closed in [one for one in _of_loop if one.is_closed()]:
                del _of_loop[closed]
            known = _of_loop[loop] = _make(loop)
        return known

    def watch(self, fd: int, readable: Callback) -> None:
        raise NotImplementedError

    def watch_writes(self, fd: int, writable: Callback) -> None:
        raise NotImplementedError

    def unwatch(self, fd: int) -> None:
        raise NotImplementedError

    def unwatch_writes(self, fd: int) -> None:
        raise NotImplementedError

    def forget(self, fd: int) -> None:
        """To be called before the socket is closed."""
        self.unwatch(fd)
        self.unwatch_writes(fd)

    def read(self) -> bool:
        """Read what is ready now, without waiting for the loop to say so; whether that was all."""
        raise NotImplementedError

    async def writable(self, fd: int) -> None:
        """Until a socket that nobody watches can be written, or has failed."""
        done = self._loop.create_future()
        self.watch_writes(fd, partial(_wake, done))
        try:
            await done
        finally:
            self.unwatch_writes(fd)

    async def readable(self, fd: int) -> None:
        done = self._loop.create_future()
        self.watch(fd, partial(_wake, done))
        try:
            await done
        finally:
            self.unwatch(fd)

    def soon(self, callback: Callback) -> None:
        """When what is ready now has been read."""
        self._loop.call_soon(callback)

    def transmit_soon(self) -> None:
        """What is `outgoing` is written when all users whose turn it is have made their calls.

        To be called before the first one is put there.
        """
        self._loop.call_soon(self._transmit)

    def _transmit(self) -> None:
        # What has come meanwhile on a connection that is about to be written to answers nothing
        # that was asked there: it must be seen before the request leaves. More may be ready than
        # a turn reads; but long answers are ready again and again, so no more turns than it takes.
        if self._read_first == 0:
            self._ready_most = len(self._readers)
        if not self.read():
            self._read_first += BATCH
            if self._read_first < self._ready_most:
                self.transmit_soon()
                return
        self._read_first = 0
        batch = self.outgoing[:]
        self.outgoing.clear()
        now = perf_counter()
        for one in batch:
            now = one.transmit(now)


class EpollReadiness(Readiness):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._epoll = select.epoll()
        self._poll = self._epoll.poll
        self._awaited: dict[int, int] = {}  # what the kernel was told, by descriptor
        loop.add_reader(self._epoll.fileno(), self.read)

    def watch(self, fd: int, readable: Callback) -> None:
        self._readers[fd] = readable
        self._await(fd, self._awaited.get(fd, 0) | _IN)

    def watch_writes(self, fd: int, writable: Callback) -> None:
        self._writers[fd] = writable
        self._await(fd, self._awaited.get(fd, 0) | _OUT)

    def unwatch(self, fd: int) -> None:
        if self._readers.pop(fd, None) is not None:
            self._await(fd, self._awaited[fd] & ~_IN)

    def unwatch_writes(self, fd: int) -> None:
        if self._writers.pop(fd, None) is not None:
            self._await(fd, self._awaited[fd] & ~_OUT)

    def _await(self, fd: int, events: int) -> None:
        known = self._awaited.get(fd)
        if not events:
            del self._awaited[fd]
            self._epoll.unregister(fd)
            return
        if known is None:
            self._epoll.register(fd, events)
        elif known != events:
            self._epoll.modify(fd, events)
        self._awaited[fd] = events

    def read(self) -> bool:
        readers = self._readers
        ready = self._poll(0, BATCH)
        for fd, events in ready:
            if events == _IN and fd in readers:
                readers[fd]()
            else:
                self._happened(fd, events)
        return len(ready) < BATCH

    def _happened(self, fd: int, events: int) -> None:
        """More than something to read: errors and hang-ups concern whoever waits."""
        if fd in self._readers and events & ~_OUT:
            self._readers[fd]()
        if fd in self._writers and events & ~_IN:
            self._writers[fd]()


class LoopReadiness(Readiness):
    """Each socket is watched by the event loop itself."""

    def watch(self, fd: int, readable: Callback) -> None:
        self._readers[fd] = readable
        self._loop.add_reader(fd, self._heard, fd)

    def watch_writes(self, fd: int, writable: Callback) -> None:
        self._writers[fd] = writable
        self._loop.add_writer(fd, writable)

    def unwatch(self, fd: int) -> None:
        if self._readers.pop(fd, None) is not None:
            self._loop.remove_reader(fd)

    def unwatch_writes(self, fd: int) -> None:
        if self._writers.pop(fd, None) is not None:
            self._loop.remove_writer(fd)

    def _heard(self, fd: int) -> None:
        if fd in self._readers:
            self._readers[fd]()
        # That a connection broke, uvloop says once: perhaps while there is an answer to read first.
        if fd in self._readers and _is_broken(fd):
            self._loop.call_soon(self._heard, fd)

    def read(self) -> bool:
        """Only of those that are about to be written: which others are ready, the loop knows."""
        for one in self.outgoing[:]:
            one.readable()
        return True


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _is_broken(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, 0)  # errors and hang-ups are told unasked
    return bool(poll.poll(0))


_of_loop: dict[asyncio.AbstractEventLoop, Readiness] = {}


def readiness_setting() -> str:
    """What HYPERSCALE_READINESS says. Raises BadInput."""
    said = os.environ.get(SETTING, "")
    if said not in ("", "epoll", "asyncio"):
        raise BadInput(f"{SETTING} is {said!r}", "it may be epoll or asyncio")
    return said


def _make(loop: asyncio.AbstractEventLoop) -> Readiness:
    if readiness_setting() == "asyncio" or not hasattr(select, "epoll"):
        return LoopReadiness(loop)
    return EpollReadiness(loop)
