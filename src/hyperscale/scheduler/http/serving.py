"""The API on a socket, in the event loop of the scheduler it speaks for."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from hyperscale.errors import BadInput
from hyperscale.runtime.open_files import raise_open_files
from hyperscale.scheduler.http.limits import (
    HANDSHAKE_S,
    Connections,
    LimitedProtocol,
    connections_max,
)

KEEP_ALIVE_S: Final = 90
STOP_WITHIN_S: Final = 5
BACKLOG: Final = 1024


def bind(host: str, port: int) -> socket.socket:
    """Before anything else is started, so that a taken port costs nothing."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise BadInput(
            f"{host}:{port} cannot be listened on: {error.strerror or error}",
            "choose another with --host and --port",
        ) from error
    listener.listen(BACKLOG)
    return listener


def address_of(listener: socket.socket, tls: ssl.SSLContext | None) -> str:
    """What to call it by: the machine's name when it listens everywhere."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    scheme = "http" if tls is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class _Server(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """Signals are the command's business."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await self._serve(sockets)  # the public one would take over SIGINT and SIGTERM

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, with limits: those of `limits`, and a time for the TLS handshake."""
        raise_open_files()
        config, among = self.config, Connections(connections_max())
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                lambda: LimitedProtocol(config, self.server_state, {}, among),
                sock=listener,
                ssl=config.ssl,
                ssl_handshake_timeout=HANDSHAKE_S if config.ssl else None,
                backlog=BACKLOG,
            )
            for listener in sockets or ()
        ]
        self.started = True


@asynccontextmanager
async def serving(
    app: ASGIApp, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_WITHIN_S,
        server_header=False,
    )
    config.load()
    config.ssl = tls
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]), name="scheduler-api")
    try:
        yield
    finally:
        server.should_exit = True
        await task
        listener.close()
