"""Logs for people and their tools: one JSON object per line.

    logs = configure("logs/gate.log", level="info", levels={"wire": "debug"})
    log = logger("gate.dispatch")
    with correlated(job_id=job_id):
        log.info("job accepted", datacenters=3)
    logs.stop()

A line has `timestamp`, `level`, `component`, `event`, the correlation ids of the task it was
written in, and what the caller added. Writing never waits: see `log_writer`. A process that did
not configure anything gets warnings on stderr.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
import structlog
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from hyperscale.errors import BadInput
from hyperscale.runtime.log_writer import FileOutlet, LogWriter, Outlet, StreamOutlet

Level: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]

LEVELS: Final[dict[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
STREAMS: Final = {"stdout": 1, "stderr": 2}
PACKAGE: Final = "hyperscale."

ROTATE_BYTES: Final = 64 << 20
ROTATE_S: Final = 86_400.0
KEEP_FILES: Final = 10
KEEP_S: Final = 14 * 86_400.0
QUEUE_LINES: Final = 10_000
"""Some 3 MB of lines, a tenth of a second of the most talkative program."""


@dataclass(frozen=True, slots=True)
class _Thresholds:
    """Level per component; a component without one has that of the nearest name before a dot."""

    default: int
    by_component: Mapping[str, int]

    def of(self, component: str) -> int:
        name = component
        while name:
            level = self.by_component.get(name)
            if level is not None:
                return level
            name = name.rpartition(".")[0]
        return self.default

    def lowest(self) -> int:
        return min(self.default, *self.by_component.values(), 50)


class _Component:
    """What structlog writes to: knows who speaks."""

    __slots__ = ("component", "level", "put")

    def __init__(self, component: str, level: int, put: Callable[[bytes], None]) -> None:
        self.component = component
        self.level = level
        self.put = put

    def _emit(self, line: bytes) -> None:
        self.put(line)

    debug = info = warning = warn = error = critical = fatal = exception = msg = log = _emit


class Logs:
    """The configured destination. `stop` writes what is queued and leaves nothing behind."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    @property
    def dropped(self) -> int:
        return self._writer.dropped_total

    @property
    def failed(self) -> int:
        return self._writer.failed_total

    def flush(self, timeout_s: float = 5.0) -> bool:
        return self._writer.flush(timeout_s)

    def stop(self, timeout_s: float = 5.0) -> bool:
        """False: not everything could be written in time."""
        global _current
        if _current is self:
            _current = None
        return self._writer.stop(timeout_s)


_current: Logs | None = None


def configure(
    destination: str | Path = "stderr",
    *,
    level: Level = "info",
    levels: Mapping[str, Level] | None = None,
    rotate_bytes: int = ROTATE_BYTES,
    rotate_s: float = ROTATE_S,
    keep_files: int = KEEP_FILES,
    keep_s: float = KEEP_S,
    queue_lines: int = QUEUE_LINES,
    fsync: bool = False,
    callsite: bool = False,
    wall: Callable[[], float] = time.time,
) -> Logs:
    """Begin to log to "stdout", "stderr" or a file. Loggers made before follow. What was configured
    before is written to its end and stopped."""
    global _current
    if rotate_bytes < 1 or rotate_s <= 0 or keep_files < 0 or keep_s < 0 or queue_lines < 1:
        raise BadInput("The sizes and times of log files must be positive.")
    thresholds = _Thresholds(
        _number(level), {_short(name): _number(text) for name, text in (levels or {}).items()}
    )
    outlet: Outlet
    if destination in STREAMS:
        outlet = StreamOutlet(STREAMS[str(destination)])
    else:
        outlet = _file(Path(destination), rotate_bytes, rotate_s, keep_files, keep_s, wall)
    writer = LogWriter(outlet, _note(wall), queue_lines, fsync)
    if _current is not None:
        _current.stop()
    _current = Logs(writer)
    _install(thresholds, writer.put, wall, callsite)
    return _current


def logger(component: str, **always: Any) -> FilteringBoundLogger:
    """The logger of a component ("gate", "wire.handshake"); `always` is on every line of it."""
    if not structlog.is_configured():
        _install(_Thresholds(logging.WARNING, {}), _put_unconfigured, time.time, callsite=False)
    made: FilteringBoundLogger = structlog.get_logger(component, **always)
    return made


def _put_unconfigured(line: bytes) -> None:
    """The first line of a process that configured nothing: from now on there is a writer."""
    configure("stderr", level="warning")._writer.put(line)


def _install(
    thresholds: _Thresholds,
    put: Callable[[bytes], None],
    wall: Callable[[], float],
    callsite: bool,
) -> None:
    processors: list[Processor] = [_heed_level, merge_contextvars]
    if callsite:
        processors.append(_callsite())
    structlog.configure(
        processors=[*processors, structlog.processors.format_exc_info, _renderer(wall)],
        wrapper_class=structlog.make_filtering_bound_logger(thresholds.lowest()),
        logger_factory=lambda *names: _component(names, thresholds, put),
        cache_logger_on_first_use=False,
    )


def correlated(**ids: str) -> AbstractContextManager[None]:
    """Within it, and in tasks started from it, every line carries these ids."""
    return bound_contextvars(**ids)


def _number(level: str) -> int:
    number = LEVELS.get(str(level).lower())
    if number is None:
        raise BadInput(f"{level!r} is no log level.", f"One of {', '.join(LEVELS)}.")
    return number


def _short(name: str) -> str:
    return name.removeprefix(PACKAGE)


def _file(
    path: Path,
    rotate_bytes: int,
    rotate_s: float,
    keep_files: int,
    keep_s: float,
    wall: Callable[[], float],
) -> FileOutlet:
    try:
        return FileOutlet(path, rotate_bytes, rotate_s, keep_files, keep_s, wall)
    except OSError as error:
        raise BadInput(
            f"The log file {path} cannot be opened: {error.strerror}.",
            "Name a file in a directory that can be written.",
        ) from error


def _component(
    names: tuple[Any, ...], thresholds: _Thresholds, put: Callable[[bytes], None]
) -> _Component:
    component = _short(str(names[0])) if names else "main"
    return _Component(component, thresholds.of(component), put)


def _heed_level(speaker: WrappedLogger, method: str, event: EventDict) -> EventDict:
    if isinstance(speaker, _Component):
        if LEVELS.get(_LEVEL_OF.get(method, method), logging.INFO) < speaker.level:
            raise structlog.DropEvent
        event["component"] = speaker.component
    event["level"] = _LEVEL_OF.get(method, method)
    return event


_LEVEL_OF: Final = {"warn": "warning", "exception": "error", "fatal": "critical", "msg": "info"}


def _callsite() -> Processor:
    parameter = structlog.processors.CallsiteParameter
    return structlog.processors.CallsiteParameterAdder(
        {parameter.FILENAME, parameter.FUNC_NAME, parameter.LINENO, parameter.THREAD}
    )


def _timestamp(wall: float) -> str:
    seconds, milliseconds = divmod(int(wall * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03}Z"


_encode = msgspec.json.Encoder(enc_hook=repr, decimal_format="string").encode


def _line(fields: Mapping[str, Any]) -> bytes:
    try:
        return _encode(fields) + b"\n"
    except (TypeError, ValueError, RecursionError):
        return _encode({key: _plain(value) for key, value in fields.items()}) + b"\n"


def _plain(value: object) -> object:
    """A value that cannot be encoded (odd keys, a loop, lone surrogates) is shown, not lost."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value).encode("utf-8", "backslashreplace").decode()


def _renderer(wall: Callable[[], float]) -> Processor:
    def render(_: WrappedLogger, __: str, event: EventDict) -> bytes:
        head = {
            "timestamp": _timestamp(wall()),
            "level": event.pop("level", "info"),
            "component": event.pop("component", "main"),
            "event": event.pop("event", ""),
        }
        return _line({**head, **event})

    return render


def _note(wall: Callable[[], float]) -> Callable[[str, int, str], bytes]:
    def note(event: str, count: int, detail: str) -> bytes:
        return _line(
            {
                "timestamp": _timestamp(wall()),
                "level": "warning",
                "component": "logs",
                "event": event,
                "count": count,
                "detail": detail,
            }
        )

    return note
