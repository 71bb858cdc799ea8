"""Points to a Prometheus remote-write receiver: `prometheus-rw://host:9090`.

Prometheus itself (with --web.enable-remote-write-receiver), Mimir, Thanos and VictoriaMetrics
take it. A request is a protobuf message of three fields in a snappy block: both are written here
in a few lines, and a library would have to be installed.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Sequence

from hyperscale.reporting.backends.http import HttpPoster, origin
from hyperscale.reporting.config import Config
from hyperscale.reporting.contract import Backend
from hyperscale.reporting.points import Points, Row

_WRONG = re.compile(r"[^a-zA-Z0-9_]")
_QUANTILES = {
    "p50_ms": ("duration_seconds", "0.5"),
    "p95_ms": ("duration_seconds", "0.95"),
    "p99_ms": ("duration_seconds", "0.99"),
    "max_ms": ("duration_seconds", "1"),
    "response_p99_ms": ("response_seconds", "0.99"),
}


class PrometheusConfig(Config, frozen=True, kw_only=True):
    scheme = "prometheus-rw"
    path_field = "path"

    host: str = "localhost"
    port: int = 9090
    path: str = "api/v1/write"
    username: str = ""
    password: str = ""
    token: str = ""
    secure: bool = False
    headers: dict[str, str] = {}  # such as X-Scope-OrgID; not from a URL

    def backend(self) -> Backend:
        return PrometheusReporter(self)


class PrometheusReporter(Backend):
    live = True

    def __init__(self, config: PrometheusConfig) -> None:
        headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
            **config.headers,
        }
        if config.token:
            headers["Authorization"] = f"Bearer {config.token}"
        elif config.username:
            pair = f"{config.username}:{config.password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        self._path = f"/{config.path.lstrip('/')}"
        self._poster = HttpPoster(origin(config.host, config.port, config.secure), headers)
        self._series: dict[tuple[object, ...], bytes] = {}

    async def connect(self) -> None:
        """An empty write tells whether there is a receiver."""
        await self._poster.send("POST", self._path, snappy(b""))

    async def submit(self, points: Sequence[Points]) -> None:
        """A series at a time, as receivers want samples in the order of their times."""
        series: dict[bytes, list[bytes]] = {}
        for each in points:
            time_ms = varint(round(each.time_s * 1000))
            for row in each.rows:
                for labels, value in self._samples(each, row):
                    sample = b"\x09" + struct.pack("<d", value) + b"\x10" + time_ms
                    series.setdefault(labels, []).append(b"\x12" + varint(len(sample)) + sample)
        message = b"".join(
            b"\x0a" + varint(len(labels) + sum(map(len, samples))) + labels + b"".join(samples)
            for labels, samples in series.items()
        )
        await self._poster.send("POST", self._path, snappy(message))

    def _samples(self, points: Points, row: Row) -> Iterator[tuple[bytes, float]]:
        """Encoded labels are kept: of a series they are the same each second."""
        key = (row.about, *points.common.values(), *row.labels.items())
        for field, total in row.totals.items():
            yield self._labels((*key, field), points, row, f"{field}_total", ""), float(total)
        for field, value in row.gauges.items():
            name, quantile = _QUANTILES.get(field, (field, ""))
            if quantile:
                value /= 1000
            yield self._labels((*key, field), points, row, name, quantile), value

    def _labels(
        self, key: tuple[object, ...], points: Points, row: Row, name: str, quantile: str
    ) -> bytes:
        if found := self._series.get(key):
            return found
        if name.endswith("_s"):
            name = f"{name}econds"
        labels = {_WRONG.sub("_", label): text for label, text in points.common.items()}
        labels |= {_WRONG.sub("_", label): text for label, text in row.labels.items() if text}
        labels["__name__"] = f"hyperscale_{row.about}_{_WRONG.sub('_', name)}"
        if quantile:
            labels["quantile"] = quantile
        made = b"".join(
            b"\x0a" + varint(len(pair)) + pair
            for label in sorted(labels)
            for pair in (_text(0x0A, label) + _text(0x12, labels[label]),)
        )
        self._series[key] = made
        return made

    async def close(self) -> None:
        await self._poster.close()


def _text(tag: int, text: str) -> bytes:
    data = text.encode()
    return bytes([tag]) + varint(len(data)) + data


def varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


LITERAL_BYTES = 65_536


def snappy(data: bytes) -> bytes:
    """A valid block of literals: what a compressor may always choose. On its way within one
    network the bytes cost less than the time to find what repeats."""
    made = [varint(len(data))]
    for start in range(0, len(data), LITERAL_BYTES):
        part = data[start : start + LITERAL_BYTES]
        made += [b"\xf4", struct.pack("<H", len(part) - 1), part]
    return b"".join(made)
