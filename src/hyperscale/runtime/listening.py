"""Accepting connections, and how many of those who have not shown who they are.

A connection costs a file from the moment it is accepted, long before its TLS handshake is over. So
only so many handshakes are under way at once; the rest wait in the kernel's queue, where they cost
nothing. One source has no more than its share of them: what it opens beyond is closed at once, or
the queue would be full of its connections and nobody else would get in. The last files of the
process are never given to those who connect.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable

from hyperscale.runtime.host import Address, Task
from hyperscale.runtime.newcomers import Newcomers, source_of
from hyperscale.runtime.open_files import files_for_others
from hyperscale.runtime.streams import RealStream, address_of
from hyperscale.runtime.tasks import RealTasks

# A connection that has not shown its certificate by then is not worth a slot.
TLS_HANDSHAKE_TIMEOUT_S = 3.0
# How long a closing TLS stream waits for the other side's goodbye.
TLS_GOODBYE_TIMEOUT_S = 1.0
# A restart of a big cluster connects everyone at once.
BACKLOG = 1024
HANDSHAKES_MAX = 256
# Half: workers of one machine, or behind one address, come in this many at a time.
HANDSHAKES_OF_SOURCE_MAX = 128
# A hundred times what a handshake takes on a busy machine.
GIVE_WAY_S = 1.0
# To another of the same source; a round trip around the world and its handshake.
GIVE_WAY_TO_OWN_S = 0.25
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
        self._handshakes: Newcomers[socket.socket] = Newcomers(self._loop.time, self._send_away)
        self._tasks_of: dict[socket.socket, Task] = {}
        self._resuming: asyncio.TimerHandle | None = None
        self._accepting = False
        self._closed = False
        self.turned_away: Counter[str] = Counter()
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
        if self._handshakes.room(HANDSHAKES_MAX, GIVE_WAY_S):
            self._accept()
        else:
            self._pause(self._handshakes.next_place_at(GIVE_WAY_S))

    def _readable(self, listening: socket.socket) -> None:
        for _ in range(BACKLOG):
            if not self._handshakes.room(HANDSHAKES_MAX, GIVE_WAY_S):
                self._resume()
                return
            try:
                accepted, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # out of files, of buffers: of whatever accepting takes
                self._pause(self._loop.time() + PAUSE_S)
                return
            self._judge(accepted, address_of(peer))

    def _judge(self, accepted: socket.socket, peer: Address) -> None:
        source = source_of(peer.host)
        if accepted.fileno() >= files_for_others():
            self.turned_away["out_of_files"] += 1
            accepted.close()
        elif not self._handshakes.room_for(source, HANDSHAKES_OF_SOURCE_MAX, GIVE_WAY_TO_OWN_S):
            self.turned_away["too_many_of_source"] += 1
            accepted.close()
        else:
            self._serve(accepted, peer, source)

    def _send_away(self, accepted: socket.socket) -> None:
        self.turned_away["handshake_slow"] += 1
        self._tasks_of[accepted].cancel()

    def _serve(self, accepted: socket.socket, peer: Address, source: str) -> None:
        accepted.setblocking(False)
        serving = self._greet(accepted)
        try:
            task = self._tasks.spawn(f"serve {peer}", serving)
        except RuntimeError:  # accepted while this host was stopping
            accepted.close()
        else:
            self._handshakes.add(accepted, source)
            self._tasks_of[accepted] = task

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
        except OSError as error:
            self.turned_away[_why(error)] += 1
            return
        finally:
            self._handshakes.discard(accepted)
            self._tasks_of.pop(accepted, None)
            if not self._accepting and not self._closed:
                self._resume()
        await self._on_stream(stream)


def _why(error: OSError) -> str:
    """Of no handshake; asyncio says of one that takes too long that it was aborted."""
    if isinstance(error, ssl.SSLError):
        return "tls_failed"
    return "handshake_slow" if isinstance(error, ConnectionAbortedError) else "tls_broken_off"
