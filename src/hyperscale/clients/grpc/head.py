"""The header fields of a call: those of gRPC itself and the metadata of the author."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from hyperscale._version import __version__
from hyperscale.clients.http.target import Target
from hyperscale.errors import BadInput
from hyperscale.workload.headers import header_lines, header_name

Pairs = tuple[tuple[str, str], ...]
Metadata = Mapping[str, Any] | Iterable[tuple[str, Any]] | None


def head_of(
    target: Target, path: str, metadata: Pairs, timeout: float, compress: str | None
) -> bytes:
    """The lines of a request."""
    fields = [
        (":method", "POST"),
        (":scheme", target.scheme),
        (":path", path),
        (":authority", target.host_header),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", f"hyperscale-grpc/{__version__}"),
        ("grpc-accept-encoding", "identity,gzip"),
        ("grpc-timeout", _timeout(timeout)),
    ]
    if compress:
        fields.append(("grpc-encoding", compress))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields).encode("ascii")
    return lines + header_lines(metadata)[0]


def pairs_of(metadata: Metadata) -> Pairs:
    """As text, with names in lower case."""
    if metadata is None:
        return ()
    given = metadata.items() if isinstance(metadata, Mapping) else metadata
    pairs = []
    for name, value in given:
        lower = header_name(name)[1]
        if lower.startswith("grpc-") or lower in ("te", "content-type", "host"):
            raise BadInput(f"metadata may not have the name {name!r}: gRPC uses it itself")
        if lower.endswith("-bin"):
            data = value if isinstance(value, bytes) else str(value).encode()
            value = base64.b64encode(data).rstrip(b"=").decode()
        elif isinstance(value, bytes):
            raise BadInput(f"metadata {name!r} is bytes", "bytes are for names that end in -bin")
        pairs.append((lower, str(value)))
    return tuple(pairs)


def _timeout(seconds: float) -> str:
    """At most eight digits, rounded up."""
    for unit, size in (("m", 1e3), ("S", 1.0), ("M", 1 / 60)):
        amount = int(seconds * size) + (seconds * size % 1 > 0)
        if amount < 10**8:
            return f"{max(amount, 1)}{unit}"
    return "99999999H"
