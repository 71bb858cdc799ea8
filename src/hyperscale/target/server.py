"""The target as an object on a running event loop: start it, use its URL, stop it."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from hyperscale.errors import BadInput
from hyperscale.target.connection import Connection
from hyperscale.target.routes import new_site

if TYPE_CHECKING:
    from aioquic.asyncio.server import QuicServer

# Thousands of users connect in the same instant; the kernel cuts this to its own limit.
BACKLOG = 4096
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class Target:
    """`url` and, with TLS, `certificate` (the file a client must trust) are set by `start`."""

    def __init__(self) -> None:
        self.url = ""
        self.certificate: Path | None = None
        self._site = new_site()
        self._server: asyncio.Server | None = None
        self._quic: QuicServer | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def start(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool | ssl.SSLContext = False,
        unix_socket: str | None = None,
        reuse_port: bool = False,
    ) -> str:
        """Listen and return the URL. Port 0 takes a free one; behind a Unix socket the URL is
        `http://localhost`. Give `tls` a context of your own to ask for client certificates."""
        check_port(port)
        context = self._own_context(host) if tls is True else (tls or None)
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(self._site)

        try:
            if unix_socket is None:
                self._server = await loop.create_server(
                    connection,
                    host,
                    port,
                    ssl=context,
                    backlog=BACKLOG,
                    reuse_port=reuse_port or None,
                )
                shown = EVERYWHERE.get(host, host)
                authority = f"[{shown}]" if ":" in shown else shown
                authority += f":{self.port}"
                if tls is True and not reuse_port:
                    await self._listen_for_quic(host)
            else:
                self._server = await loop.create_unix_server(
                    connection, unix_socket, ssl=context, backlog=BACKLOG
                )
                authority = "localhost"
        except OSError as error:
            self._forget_certificate()
            raise cannot_listen(error, host, port, unix_socket) from error
        self.url = f"{'https' if context else 'http'}://{authority}"
        return self.url

    async def _listen_for_quic(self, host: str) -> None:
        if find_spec("aioquic") is None or self._folder is None:
            return
        from hyperscale.target.http3 import listen

        folder = Path(self._folder.name)
        # Of a port of TCP nobody may have that of UDP: HTTP/3 is then not to be had.
        with suppress(OSError):
            self._quic = await listen(
                self._site, host, self.port, folder / "certificate.pem", folder / "key.pem"
            )

    @property
    def port(self) -> int:
        """Of a target that listens at one."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Close the port and every connection at once. Safe to call again."""
        if self._quic is not None:
            self._quic.close()
            self._quic = None
        if self._server is not None:
            self._server.close()
            for connection in list(self._site.connections):
                connection.transport.abort()
            await self._server.wait_closed()
            self._server = None
        self._forget_certificate()

    async def __aenter__(self) -> Target:
        if self._server is None:
            await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def _own_context(self, host: str) -> ssl.SSLContext:
        from hyperscale.target.certificate import server_context, write_certificate

        self._folder = tempfile.TemporaryDirectory(prefix="hyperscale-target-")
        try:
            self.certificate, key = write_certificate(Path(self._folder.name), host)
        except BadInput:
            self._forget_certificate()
            raise
        return server_context(self.certificate, key)

    def _forget_certificate(self) -> None:
        self.certificate = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def check_port(port: int) -> None:
    """Some event loops take the number modulo 65536 without a word."""
    if not 0 <= port <= 65_535:
        raise BadInput(f"There is no port {port}.", "Ports go from 0 to 65535.")


def cannot_listen(error: OSError, host: str, port: int, unix_socket: str | None) -> BadInput:
    if unix_socket is not None:
        reason = error.strerror or str(error)
        return BadInput(
            f"The target cannot listen on the Unix socket {unix_socket}: {reason}.",
            "Choose a short path in a folder you may write to.",
        )
    if error.errno == errno.EADDRINUSE:
        return BadInput(
            f"Port {port} on {host} is already in use.",
            "Stop what listens there, choose another port, or port 0 for a free one.",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return BadInput(
            f"Not allowed to listen on port {port} of {host}.",
            "Ports below 1024 need special rights; choose a higher one.",
        )
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return BadInput(
            f"This machine has no address {host} to listen on.",
            "Use 127.0.0.1 for this machine only, 0.0.0.0 for every network it is in.",
        )
    return BadInput(f"The target cannot listen on {host}:{port}: {error}.")
