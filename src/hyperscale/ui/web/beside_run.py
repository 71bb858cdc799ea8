"""The page of a run of this process: a view beside it, and what is left of it after its end."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final, NamedTuple

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import Results
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost
from hyperscale.ui.live.source import Source
from hyperscale.ui.web.door import Door
from hyperscale.ui.web.http import WebServer
from hyperscale.ui.web.hub import Hub
from hyperscale.ui.web.patches import Patch
from hyperscale.ui.web.site import Site
from hyperscale.ui.web.steering import Command, steer
from hyperscale.ui.web.view import Watching

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8089
# After the run: pages find the server again within a second, and a reload takes as long.
STAYS_WITHOUT_READERS_S: Final = 5.0


class Place(NamedTuple):
    address: Address
    held: socket.socket
    """Bound and not listening: nobody else gets the port before the server has it, or between the
    servers that a run has one after the other."""


def place_of(bind: str) -> Place:
    """Where the page will be: HOST, HOST:PORT or :PORT. A port that is not named gives way to a
    free one. Raises BadInput where nothing can listen."""
    host, colon, port = bind.rpartition(":") if not bind.endswith("]") else (bind, "", "")
    if not colon:
        host, port = bind, ""
    host = host.strip("[]") or DEFAULT_HOST
    if port and not (port.isascii() and port.isdecimal() and int(port) < 65_536):
        raise BadInput(f"--web-bind {bind}: {port!r} is no port", "--web-bind 127.0.0.1:8089")
    wanted = [int(port)] if port else [DEFAULT_PORT, 0]
    for number in wanted:
        try:
            return _held(host, number)
        except OSError as error:
            if number == wanted[-1]:
                raise BadInput(
                    f"no page can be opened at {host}:{number}: {_why(error)}",
                    "choose another place with --web-bind HOST:PORT",
                ) from error
    raise AssertionError("the last of them returns or raises")


def _held(host: str, port: int) -> Place:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, where = found[0]
    socket.create_server(where, family=family).close()  # somebody may listen there already
    held = socket.socket(family)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(where)
    return Place(Address(host, held.getsockname()[1]), held)


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).partition(" (while")[0]


def url_of(address: Address, token: str) -> str:
    """The token stands behind the #, which no server is sent."""
    host = socket.gethostname() if address.host in ("0.0.0.0", "::") else address.host
    url = f"http://{Address(host, address.port)}/"
    return f"{url}#token={token}" if token else url


class RunPage:
    """A `View` beside others, and the `Run` of its site."""

    def __init__(self, bind: str = "", token: str = "") -> None:
        """Raises BadInput where nothing can listen."""
        self._place = place_of(bind)
        self._address = self._place.address
        self._door = Door(self._address.host, token)
        self._watching = Watching()
        self._source: Source | None = None
        self._final: Results | None = None
        self.is_read = False
        """Somebody looked at it when the run ended."""

    @property
    def url(self) -> str:
        return url_of(self._address, self._door.token)

    @property
    def hub(self) -> Hub:
        return self._watching.hub

    def results(self) -> Results | None:
        return self._final

    async def steer(self, command: Command) -> str:
        if self._source is None or self._final is not None:
            raise BadInput("the run is over")
        said = steer(self._source, command)
        self._watching.nudge()
        return said

    def over(self) -> None:
        self._watching.over()

    async def run(self, source: Source) -> None:
        self._source = source
        async with RealHost("web", os.devnull) as host:
            await WebServer(host, Site(self._door, self)).start(self._address)
            await self._watching.run(source)
            self.is_read = self.hub.readers > 0

    def stay(self, results: Results) -> None:
        """Until nobody looks at it any more, or Ctrl-C."""
        self._final = results
        try:
            asyncio.run(self._stay(results))
        except KeyboardInterrupt:
            return

    async def _stay(self, results: Results) -> None:
        self._watching = Watching()  # of this loop
        self._watching.show(results)
        self.hub.publish(Patch(set={"files": msgspec.Raw(b"true")}))
        async with RealHost("web", os.devnull) as host:
            await WebServer(host, Site(self._door, self)).start(self._address)
            clock = host.clock
            seen_at = clock.now()
            while clock.now() - seen_at < STAYS_WITHOUT_READERS_S:
                await clock.sleep(0.25)
                if self.hub.readers:
                    seen_at = clock.now()
