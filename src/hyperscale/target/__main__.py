"""The child of `TargetProcess`: one line of JSON when it listens, gone when stdin closes."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import sys
import threading
from pathlib import Path

import msgspec

from hyperscale.errors import HyperscaleError
from hyperscale.target.process import Failed, Options, Ready
from hyperscale.target.serve import run, stop_signal
from hyperscale.target.server import Target


def say(answer: Ready | Failed) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def stop_with_parent(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 1024):
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=watch, daemon=True).start()


async def serve(options: Options) -> None:
    stop = stop_signal()
    if len(sys.argv) > 1:
        # Ctrl-C reaches the whole group; the parent decides when its target has done its work.
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_with_parent(stop)
    tls: bool | ssl.SSLContext = options.tls
    if options.certificate and options.key:
        from hyperscale.target.certificate import server_context

        tls = server_context(Path(options.certificate), Path(options.key))
    target = Target()
    try:
        await target.start(options.host, options.port, tls, options.unix_socket, options.reuse_port)
        say(Ready(target.url, str(target.certificate) if target.certificate else None))
        await stop.wait()
    finally:
        await target.stop()


def main() -> int:
    options = msgspec.json.decode(sys.argv[1] if len(sys.argv) > 1 else "{}", type=Options)
    if options.cpu is not None and sys.platform == "linux":
        os.sched_setaffinity(0, {options.cpu})
    try:
        run(serve(options))
    except HyperscaleError as error:
        say(Failed(error.message, error.hint))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
