"""Accepting connections, and how many of those who have not shown who they are.

A connection costs a file from the moment it is accepted, long before its TLS handshake is over. So
only so many handshakes are under way at once; the rest wait in the kernel's queue, where they cost
nothing. One that takes long gives way to the next: a node in earnest needs milliseconds. The last
files of the process are never given to those who connect.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable

from hyperscale.runtime.host import Address, Task
from hyperscale.runtime.open_files import files_for_others
from hyperscale.runtime.streams import RealStream, address_of
from hyperscale.runtime.tasks import RealTasks

# A connection that has not shown its certificate by then is not worth a slot.
TLS_HANDSHAKE_TIMEOUT_S = 10.0
# How long a closing TLS stream waits for the other side's goodbye.
TLS_GOODBYE_TIMEOUT_S = 1.0
# A restart of a big cluster connects everyone at once.
BACKLOG = 1024
HANDSHAKES_MAX = 256
# A hundred times what a handshake takes on a busy machine.
GIVE_WAY_S = 1.0
# After the machine had nothing to accept with.
PAUSE_S = 0.5


async def listening_sockets(address: Address) -> list[socket.socket]:
    """One for each address of the name. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, where in dict.fromkeys(found):
            sockets.append(socket.create_server(where, family=family, backlog=BACKLOG))
            sockets[-1].setblocking(False)
    except OSError:
        for one in sockets:
            one.close()
        raise
    return sockets


class RealListener:
    def __init__(
        self,
        tasks: RealTasks,
        sockets: list[socket.socket],
        on_stream: Callable[[RealStream], Awaitable[None]],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._tasks = tasks
        self._sockets = sockets
        self._on_stream = on_stream
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._address = address_of(sockets[0].getsockname())
        self._handshakes: dict[socket.socket, tuple[Task, float]] = {}
        self._resuming: asyncio.TimerHandle | None = None
        self._accepting = False
        self._closed = False
        self.out_of_files = 0
        """Connections that were closed at once, for want of a file to serve them with."""
        self._accept()

    @property
    def address(self) -> Address:
        return self._address

    def close(self) -> None:
        self._pause()
        self._closed = True
        if self._resuming is not None:
            self._resuming.cancel()
        for one in self._sockets:
            one.close()

    # -- accepting ---------------------------------------------------------------------------

    def _accept(self) -> None:
        if self._accepting or self._closed:
            return
        self._accepting = True
        for one in self._sockets:
            self._loop.add_reader(one, self._readable, one)

    def _pause(self, until: float | None = None) -> None:
        if self._accepting:
            self._accepting = False
            for one in self._sockets:
                self._loop.remove_reader(one)
        if until is not None and not self._closed:
            if self._resuming is not None:
                self._resuming.cancel()
            self._resuming = self._loop.call_at(until, self._resume)

    def _resume(self) -> None:
        """A slot is free, or the one who has held its own longest has done so for too long."""
        if len(self._handshakes) >= HANDSHAKES_MAX:
            oldest, (task, began_at) = next(iter(self._handshakes.items()))
            if self._loop.time() < began_at + GIVE_WAY_S:
                self._pause(began_at + GIVE_WAY_S)
                return
            task.cancel()
            del self._handshakes[oldest]
        self._accept()

    def _readable(self, listening: socket.socket) -> None:
        for _ in range(BACKLOG):
            if len(self._handshakes) >= HANDSHAKES_MAX:
                self._resume()
                if len(self._handshakes) >= HANDSHAKES_MAX:
                    return
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # out of files, of buffers: of whatever accepting takes
                self._pause(self._loop.time() + PAUSE_S)
                return
            if accepted.fileno() >= files_for_others():
                self.out_of_files += 1
                accepted.close()
                continue
            self._serve(accepted, address_of(peer))

    def _serve(self, accepted: socket.socket, peer: Address) -> None:
        accepted.setblocking(False)
        serving = self._greet(accepted)
        try:
            task = self._tasks.spawn(f"serve {peer}", serving)
        except RuntimeError:  # accepted while this host was stopping
            accepted.close()
        else:
            self._handshakes[accepted] = task, self._loop.time()

    async def _greet(self, accepted: socket.socket) -> None:
        stream = RealStream()
        try:
            await self._loop.connect_accepted_socket(
                lambda: stream,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_S if self._tls else None,
                ssl_shutdown_timeout=TLS_GOODBYE_TIMEOUT_S if self._tls else None,
            )
        except OSError:  # no handshake, or none in time
            return
        finally:
            self._handshakes.pop(accepted, None)
            if not self._accepting and not self._closed:
                self._resume()
        await self._on_stream(stream)
