"""The page of a folder: serves until the program is ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from hyperscale.runtime.host import Address
from hyperscale.runtime.real import RealHost, run
from hyperscale.ui.web.beside_run import place_of, url_of
from hyperscale.ui.web.door import Door
from hyperscale.ui.web.folder import Folder
from hyperscale.ui.web.http import WebServer
from hyperscale.ui.web.site import Site
from hyperscale.ui.web.started import StartedRuns


def serve_folder(
    path: Path,
    bind: str,
    token: str,
    more: Sequence[str],
    links: dict[str, str],
    tell: Callable[[str], None],
) -> None:
    """Raises BadInput where nothing can listen."""
    place = place_of(bind)
    door = Door(place.address.host, token)
    runs = StartedRuns(path, more)
    site = Site(door, runs, Folder(path), runs, links)
    run(_serve(site, runs, place.address, lambda at: tell(f"{path} at {url_of(at, door.token)}")))


async def _serve(
    site: Site, runs: StartedRuns, address: Address, ready: Callable[[Address], None]
) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with RealHost("web", os.devnull) as host:
        server = WebServer(host, site)
        ready(await server.start(address))
        await ended.wait()
        server.close()
        await runs.close()
