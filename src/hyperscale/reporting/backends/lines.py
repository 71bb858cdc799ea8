"""Points as lines of text: InfluxDB's line protocol, Graphite's, and StatsD's with its dialects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hyperscale.reporting.points import Points, Row

_TAG = str.maketrans({",": "\\,", "=": "\\=", " ": "\\ ", "\n": " ", "\r": " ", "\\": "/"})


def influx_lines(points: Sequence[Points]) -> bytes:
    """`hyperscale_step,run=...,step=... requests=7i,p95_ms=1.5 1700000000000000000`. Totals stay
    here: counts can be summed up."""
    lines: list[str] = []
    heads: dict[int, str] = {}
    for each in points:
        common = _influx_tags(each.common)
        end = f" {each.time_ns}"
        for row in each.rows:
            head = heads.get(id(row.labels))
            if head is None:
                head = heads[id(row.labels)] = _influx_tags(row.labels)
            fields = [f"{name}={count}i" for name, count in row.counts.items()]
            fields += [f"{name}={value!r}" for name, value in row.gauges.items()]
            if fields:
                lines.append(f"hyperscale_{row.about}{common}{head} {','.join(fields)}{end}")
    return "\n".join(lines).encode()


def _influx_tags(labels: dict[str, str]) -> str:
    """A tag without a value is not allowed."""
    return "".join(
        f",{name.translate(_TAG)}={text.translate(_TAG)}" for name, text in labels.items() if text
    )


_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def path_of(points: Points, row: Row) -> str:
    """`hyperscale.TEST.Shop.item`: dots part what belongs to what, so names have none."""
    words = ("hyperscale", points.common.get("test", ""), *_kinds(row), *row.labels.values())
    return ".".join(_UNSAFE.sub("_", word).strip("_") or "_" for word in words if word)


def _kinds(row: Row) -> tuple[str, ...]:
    return () if row.about in ("workflow", "step") else (row.about,)


def graphite_lines(points: Sequence[Points], prefix: str = "") -> bytes:
    """`path value seconds`; those of one second and path replace each other, as Graphite does."""
    begin = f"{prefix}." if prefix else ""
    return "".join(
        f"{begin}{path}.{name} {value} {int(each.time_s)}\n"
        for each in points
        for row in each.rows
        for path in (path_of(each, row),)
        for name, value in (*row.counts.items(), *row.gauges.items())
    ).encode()


def statsd_lines(points: Sequence[Points], dialect: str) -> Iterator[str]:
    """Counts as counters and the rest as gauges. A dialect says how labels are told: "dogstatsd"
    and "telegraf" have tags, plain "statsd" puts them into the name."""
    for each in points:
        for row in each.rows:
            name, before, after = _statsd_name(each, row, dialect)
            for field, count in row.counts.items():
                if count:
                    yield f"{name}.{field}{before}:{count}|c{after}"
            for field, value in row.gauges.items():
                yield f"{name}.{field}{before}:{value}|g{after}"


def _statsd_name(points: Points, row: Row, dialect: str) -> tuple[str, str, str]:
    if dialect == "statsd":
        return path_of(points, row), "", ""
    labels = points.common | row.labels
    name = f"hyperscale.{row.about}"
    if dialect == "dogstatsd":
        tags = ",".join(f"{_tag(key)}:{_tag(text)}" for key, text in labels.items() if text)
        return name, "", f"|#{tags}"
    return name, "".join(f",{_tag(key)}={_tag(text)}" for key, text in labels.items() if text), ""


def _tag(text: str) -> str:
    """Without what has a meaning in one of the dialects."""
    return re.sub(r"[,|#:=@\s]+", "_", text)
