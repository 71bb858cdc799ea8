"""The target as a command that runs until it is told to stop, on one core or on several."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

from hyperscale.errors import BadInput, RunFailed
from hyperscale.target.echo import Echo
from hyperscale.target.process import Options, TargetProcess
from hyperscale.target.server import Target, cannot_listen, check_port

WATCH_SECONDS = 0.2

Ready = Callable[[str, int], None]
"""Gets the URL, and the port at which TCP and UDP are echoed, 0 for none."""


def serve_forever(
    host: str = "127.0.0.1",
    port: int = 8000,
    tls: bool = False,
    workers: int = 1,
    on_ready: Ready | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` is called once connections are accepted.

    With several workers each is a process with the same port, and `/stats` speaks for the one
    that happens to answer; nothing is echoed then.
    """
    if workers < 1:
        raise BadInput(f"The target needs at least one worker, not {workers}.")
    check_port(port)
    said = on_ready or (lambda url, echo: None)
    if workers == 1:
        run(_serve_here(host, port, tls, said))
    else:
        run(_serve_with_children(host, port, tls, workers, said))


def run(main: Coroutine[object, object, None]) -> None:
    allow_many_connections()
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def allow_many_connections() -> None:
    """Each connection is an open file, and the usual limit of 1024 is below a usual load test."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):  # macOS refuses its own "unlimited"
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


async def _serve_here(host: str, port: int, tls: bool, said: Ready) -> None:
    stop = stop_signal()
    target, echo = Target(), Echo()
    try:
        url = await target.start(host, port, tls)
        with contextlib.suppress(OSError, OverflowError):  # taken: HTTP is served all the same
            await echo.start(host, target.port + 1)
        said(url, echo.port)
        await stop.wait()
    finally:
        await target.stop()
        await echo.stop()


async def _serve_with_children(host: str, port: int, tls: bool, workers: int, said: Ready) -> None:
    stop = stop_signal()
    with contextlib.ExitStack() as held:
        options = Options(host=host, port=held.enter_context(_held_port(host, port)))
        options.reuse_port = True
        if tls:
            from hyperscale.target.certificate import write_certificate

            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="hyperscale-target-"))
            certificate, key = write_certificate(Path(folder), host)
            options.certificate, options.key = str(certificate), str(key)
        children = [held.enter_context(TargetProcess(options)) for _ in range(workers)]
        said(children[0].url, 0)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCH_SECONDS):
                    await stop.wait()
            if not all(child.alive for child in children) and not stop.is_set():
                raise RunFailed("A worker process of the target died, so the target stopped.")


@contextlib.contextmanager
def _held_port(host: str, port: int) -> Iterator[int]:
    """A port that the children may share and nobody else has, ours until the block ends.

    Shared ports join silently whoever else shares them, so the first bind is an exclusive one.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            chosen: int = probe.getsockname()[1]
        with socket.socket(family) as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind((host, chosen))
            yield chosen
    except OSError as error:
        raise cannot_listen(error, host, port, None) from error
