"""A connection of the target without a network: bytes in, bytes out."""

from __future__ import annotations

import asyncio

from hyperscale.target.connection import Connection
from hyperscale.target.routes import new_site
from hyperscale.target.site import Site


class Wire(asyncio.Transport):
    def __init__(self, site: Site | None = None) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False
        self.reading = True
        self.connection = Connection(site or new_site())
        self.connection.connection_made(self)

    def feed(self, *chunks: bytes) -> bytes:
        """What comes back for these chunks."""
        before = len(self.sent)
        for chunk in chunks:
            self.connection.data_received(chunk)
        return self.sent[before:]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def get(path: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    lines = [f"{method} {path} HTTP/1.1", "Host: target", *headers, *length, "", ""]
    return "\r\n".join(lines).encode() + body
