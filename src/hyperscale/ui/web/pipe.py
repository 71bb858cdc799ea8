"""A run that another process started for its page: what changes goes to that one, line by line,
and what is asked there comes back the same way. Both are of one user on one machine."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Final

import msgspec

from hyperscale.errors import BadInput
from hyperscale.ui.live.source import Source
from hyperscale.ui.web.patches import Changes
from hyperscale.ui.web.steering import decode, steer
from hyperscale.ui.web.view import PERIOD_S, tell_workers

VARIABLE: Final = "HYPERSCALE_WEB_FD"
"""The descriptor of the run's end; no setting, and not for the processes that the run starts."""
LINE_BYTES_MAX: Final = 64 << 20


class PipeView:
    def __init__(self, descriptor: str) -> None:
        os.set_inheritable(int(descriptor), False)
        self._end = socket.socket(fileno=int(descriptor))
        self._over = asyncio.Event()

    def over(self) -> None:
        self._over.set()

    async def run(self, source: Source) -> None:
        self._end.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=self._end, limit=LINE_BYTES_MAX)
        listening = asyncio.create_task(_obey(reader, writer, source))
        telling = asyncio.create_task(
            tell_workers(source, lambda patch: writer.write(_line("patch", patch)))
        )
        changes = Changes()
        try:
            while True:
                results = source.results()
                writer.write(_line("patch", changes.since(results)))
                await writer.drain()
                if results.state == "finished" or self._over.is_set():
                    return
                try:
                    async with asyncio.timeout(PERIOD_S):
                        await self._over.wait()
                except TimeoutError:
                    continue
        except ConnectionError:
            return  # nobody reads any more, which `_obey` has noticed
        finally:
            for task in (listening, telling):
                task.cancel()
            await asyncio.wait({listening, telling})
            writer.close()


async def _obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: Source) -> None:
    while line := await reader.readline():
        try:
            said, ok = steer(source, decode(line)), True
        except BadInput as error:
            said, ok = f"{error.message}: {error.hint}" if error.hint else error.message, False
        writer.write(_line("said", {"ok": ok, "text": said}))
    source.stop()  # load must not go on when nobody can steer it


def _line(kind: str, value: object) -> bytes:
    return msgspec.json.encode({kind: value}) + b"\n"
