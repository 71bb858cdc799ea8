"""The runs of a folder: results files, and reports that carry their results inside.

Files are read when they are new or changed, and of all numbers only what a list of runs shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import SCHEMA, Distribution, Results
from hyperscale.metrics.totals import covered
from hyperscale.reporting import load
from hyperscale.ui.html.embed import embedded, extract

FILES_MAX: Final = 1_000
FILE_BYTES_MAX: Final = 128 << 20
_DEPTH: Final = ("*", "*/*")
_SUFFIXES: Final = (".json", ".html")


class Entry(msgspec.Struct, frozen=True):
    run: str  # its path in the folder
    name: str
    load: str
    started_at: str
    elapsed_s: float
    passed: bool
    exit_code: int
    requests: int
    failed: int
    rate: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class _Step(msgspec.Struct):
    count: int = 0
    failed: int = 0
    unsent: int = 0
    service: Distribution = msgspec.field(default_factory=Distribution)


class _Workflow(msgspec.Struct):
    name: str = ""
    load: str = ""
    is_test: bool = True
    started_s: float = 0.0
    elapsed_s: float = 0.0
    steps: list[_Step] = []


class _Results(msgspec.Struct):
    schema: str = ""
    name: str = ""
    started_at: str = ""
    elapsed_s: float = 0.0
    passed: bool = False
    exit_code: int = 1
    workflows: list[_Workflow] = []


_decode = msgspec.json.Decoder(_Results).decode
Seen = tuple[int, int]  # when it was written, how long it is


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, tuple[Seen, Entry | None]] = {}

    @property
    def name(self) -> str:
        return str(self.path)

    def entries(self) -> list[Entry]:
        """The newest first."""
        found: dict[str, tuple[Seen, Entry | None]] = {}
        for run, path in self._files():
            try:
                stat = path.stat()
                seen = stat.st_mtime_ns, stat.st_size
                known = self._known.get(run)
                if known is None or known[0] != seen:
                    known = seen, _entry(run, path) if stat.st_size <= FILE_BYTES_MAX else None
            except OSError:
                continue
            found[run] = known
        self._known = found
        entries = [entry for _, entry in found.values() if entry is not None]
        return sorted(entries, key=lambda one: (one.started_at, one.run), reverse=True)

    def load(self, run: str) -> Results | None:
        """None: there is no such run in the folder. Raises BadInput for a file that is damaged."""
        path = dict(self._files()).get(run)
        if path is None:
            return None
        try:
            return load(path) if path.suffix == ".json" else extract(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{run} cannot be read: {error}") from error

    def _files(self) -> Iterator[tuple[str, Path]]:
        """A report beside its results file is the same run."""
        found = sorted(
            path
            for pattern in _DEPTH
            for path in self.path.glob(pattern)
            if path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()
        )
        written = {path.with_suffix("") for path in found if path.suffix == ".json"}
        kept = [p for p in found if p.suffix == ".json" or p.with_suffix("") not in written]
        newest = sorted(kept, key=_written_ns, reverse=True)[:FILES_MAX]
        return ((path.relative_to(self.path).as_posix(), path) for path in newest)


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _entry(run: str, path: Path) -> Entry | None:
    """None: that is some other file."""
    data = path.read_bytes()
    if path.suffix == ".html":
        data = embedded(data)
    if SCHEMA.encode() not in data:
        return None
    try:
        results = _decode(data)
        return _told(run, results) if results.schema == SCHEMA else None
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, IndexError):
        return None


def _told(run: str, results: _Results) -> Entry:
    steps = [step for workflow in results.workflows for step in workflow.steps]
    service = Histogram()
    for step in steps:
        if step.service.buckets:
            service.merge(Histogram.from_distribution(step.service))
    requests = sum(step.count for step in steps)
    span_s = covered((w.started_s, w.elapsed_s) for w in results.workflows if w.is_test)
    p50, p95, p99 = service.percentiles((50, 95, 99))
    return Entry(
        run=run,
        name=results.name or ", ".join(w.name for w in results.workflows),
        load="; ".join(w.load for w in results.workflows),
        started_at=results.started_at,
        elapsed_s=results.elapsed_s,
        passed=results.passed,
        exit_code=results.exit_code,
        requests=requests,
        failed=sum(step.failed for step in steps),
        rate=requests / span_s if span_s else 0.0,
        p50_ms=p50 * 1000,
        p95_ms=p95 * 1000,
        p99_ms=p99 * 1000,
    )
