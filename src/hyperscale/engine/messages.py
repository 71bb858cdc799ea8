"""What the parent and its generator processes say to each other.

Msgpack frames over a socket pair that only the two of them hold, each with its length and the
number of the slice it concerns: a generator may have several at once. User values (context)
are opaque bytes to the parent: only a generator reads them (`engine.values`).
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Iterable
from typing import Any

import msgspec

from hyperscale.metrics.delta import Delta
from hyperscale.metrics.spans import Span
from hyperscale.workload.load import Load

FRAME_BYTES_MAX = 256 << 20  # context values of a dependent workflow may be large
_HEAD = struct.Struct("<II")  # bytes of the message, number of the slice


class Stamped(msgspec.Struct, frozen=True, array_like=True):
    """A context value, packed, and the core that wrote it, counted within its workflow."""

    stamp: int  # 0; managers of the first previews compare it before the core
    core: int
    value: bytes


Values = dict[str, Stamped]


def of_highest_core(each: Iterable[Values]) -> Values:
    """What the cores of one workflow wrote, in any order: the highest core wins."""
    found: Values = {}
    for values in each:
        for key, stamped in values.items():
            known = found.get(key)
            if known is None or stamped.core >= known.core:
                found[key] = stamped
    return found


def handed_on(setup_wrote: Values, cores_wrote: Iterable[Values]) -> Values:
    """What one workflow leaves for those that depend on it: its steps come after its setup()."""
    return setup_wrote | of_highest_core(cores_wrote)


def received(left: Iterable[Values]) -> Values:
    """What a workflow begins with, given what each of its dependencies left, in the order of
    `@depends`: the last one named wins. When each of them wrote does not matter, so that a run
    on one machine and one on many, with clocks of their own, find the same."""
    found: Values = {}
    for values in left:
        found |= values
    return found


class Prepare(msgspec.Struct, tag="prepare", frozen=True, kw_only=True):
    """Load the code, resolve and encode arguments, run the Use hooks."""

    source: bytes  # encoded: only a generator looks into it
    overrides: bytes
    workflow: str
    load: Load  # this core's share
    core: int  # 0 .. cores-1 within this workflow
    cores: int
    first_vu: int  # VU ids are unique over the cores
    context: Values
    used: dict[str, Values]  # provider workflow -> key -> value, for the Use hooks
    run_setup: bool
    seed: int | None
    env: dict[str, str]
    http_debug: str
    trace_share: float = 0.0  # of the runs of steps, that become spans
    resume_at_s: float = 0.0  # load time to begin at, when the load goes on elsewhere
    rows_used: int = 0  # rows of the data that this core may have used before
    memory_mb: int = 0  # most memory the process may take; 0: no limit
    idle: bool = False  # nothing of the load is left for this core: it is there to tear down
    worker: str = ""  # the machine's name, for what is told of failures
    secrets: list[str] = []  # names in `env` whose values nobody may read
    among: tuple[int, ...] = (0, 1)  # the datacenter, and the share of each: rows are by it
    rank: int = 0  # as `core`, among the cores of all datacenters: dice are by it


class Go(msgspec.Struct, tag="go", frozen=True):
    """Everyone is prepared: start the load. Carries what setup() wrote on the first core."""

    context: Values
    run_age_s: float = 0.0  # how long ago the load of the run began, for `start_time`


class Pause(msgspec.Struct, tag="pause", frozen=True):
    pass


class Resume(msgspec.Struct, tag="resume", frozen=True):
    pass


class Scale(msgspec.Struct, tag="scale", frozen=True):
    delta: int


class ChangeRate(msgspec.Struct, tag="change_rate", frozen=True):
    factor: float  # of the rate there is


class Stop(msgspec.Struct, tag="stop", frozen=True):
    """Stop starting iterations; with `now`, cut off the running ones too."""

    now: bool = False


class Lease(msgspec.Struct, tag="lease", frozen=True):
    """Unless another one comes within that time, end the load of the process at once.

    A generator that was never given one runs to its plan's end. Nothing else ends the load when
    the process that should end it has been suspended."""

    for_s: float


class Teardown(msgspec.Struct, tag="teardown", frozen=True):
    """Carries what setup() wrote, for a load that was never started."""

    context: Values


class Close(msgspec.Struct, tag="close", frozen=True):
    """The slice is over: drop whatever is left of it. Nothing more comes for it."""


Command = Prepare | Go | Pause | Resume | Scale | ChangeRate | Stop | Lease | Teardown | Close


class Prepared(msgspec.Struct, tag="prepared", frozen=True):
    seconds: float
    context: Values  # what setup() wrote


class Progress(msgspec.Struct, tag="progress", frozen=True):
    at_s: float  # measured load time of this core at the end of the delta
    delta: Delta


class Quiet(msgspec.Struct, tag="quiet", frozen=True):
    """Nothing moves here, as planned, and nothing need move for this long."""

    for_s: float


class Trace(msgspec.Struct, tag="trace", frozen=True):
    text: str


class SpanEnded(msgspec.Struct, tag="span", frozen=True):
    span: Span


class StopTest(msgspec.Struct, tag="stop_test", frozen=True):
    """The test's own code ends the run."""

    reason: str
    failed: bool


class Done(msgspec.Struct, tag="done", frozen=True, kw_only=True):
    """The load of this core has ended and every delta has been sent."""

    context: Values
    provided: Values
    measured_s: float
    peak_vus: int
    error: str = ""
    warnings: list[str] = []
    cut_off: bool = False  # the lease ran out


class Failed(msgspec.Struct, tag="failed", frozen=True):
    """This core could not prepare, or broke: nothing more comes for this workflow."""

    message: str
    hint: str = ""
    bad_input: bool = False
    detail: str = ""  # traceback, for --debug


class TornDown(msgspec.Struct, tag="torn_down", frozen=True):
    error: str = ""
    requests: int = 0  # that teardown() made


Report = Prepared | Progress | Quiet | Trace | SpanEnded | StopTest | Done | Failed | TornDown

_encoder = msgspec.msgpack.Encoder()
_commands: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Command)
_reports: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


def _sound(value: Any) -> Any:
    """The same with "?" for what is no character."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_sound(key): _sound(each) for key, each in value.items()}
    return [*map(_sound, value)] if isinstance(value, list | tuple) else value


class Line:
    """One end of the socket pair."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> Line:
        sock.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=sock))

    def send(self, number: int, message: Command | Report) -> None:
        try:
            body = _encoder.encode(message)
        except UnicodeEncodeError:  # half a character, perhaps out of the target's JSON
            body = _encoder.encode(_sound(msgspec.to_builtins(message, builtin_types=(bytes,))))
        self._writer.write(_HEAD.pack(len(body), number) + body)

    async def drain(self) -> None:
        await self._writer.drain()

    async def command(self) -> tuple[int, Command] | None:
        frame = await self._frame()
        return None if frame is None else (frame[0], _commands.decode(frame[1]))

    async def report(self) -> tuple[int, Report] | None:
        frame = await self._frame()
        return None if frame is None else (frame[0], _reports.decode(frame[1]))

    async def _frame(self) -> tuple[int, bytes] | None:
        """The next frame, or None when the other side is gone."""
        try:
            length, number = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            if length > FRAME_BYTES_MAX:
                raise ValueError(f"a frame of {length} bytes")
            return number, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def close(self) -> None:
        self._writer.close()
