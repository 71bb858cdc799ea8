"""What gates write down of a job, in the log of its replica group. A job is the fold of its events.

Each event has an id of its own (`request_of`), so that one that was asked for twice is there once.
"""

from __future__ import annotations

import msgspec

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.nodes.protocol.jobs import Policy, SteerJob


class Event(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """Where a job was to run, as it was submitted."""

    datacenters: dict[str, int]
    count: int
    policy: Policy


class Created(Event, frozen=True, array_like=True):
    """The job exists from here on. `datacenters` are fixed with it."""

    name: str
    body: bytes
    datacenters: dict[str, int]  # with the share of each in one load; 0: all of it
    digest: str
    idempotency_key: str = ""
    requested_by: str = ""
    correlation_id: str = ""
    owner: str = ""
    groups: tuple[str, ...] = ()
    asked: Asked | None = None  # what was asked for, where others than these were allowed


class Commanded(Event, frozen=True, array_like=True):
    """To be told to every datacenter, in the order of the log."""

    steer: SteerJob


class Begun(Event, frozen=True, array_like=True):
    """The load begins in these datacenters, which are prepared; nowhere it has begun before."""

    datacenters: tuple[str, ...]


class Told(Event, frozen=True, array_like=True):
    """What one datacenter has told so far, in all. The last one counts, should it be lost."""

    datacenter: str
    requests: int
    elapsed_s: float
    states: dict[str, bytes] = {}


class Judged(Event, frozen=True, array_like=True):
    """How a threshold stands that must not hold for a while: the `number`th of its workflow."""

    workflow: str
    number: int
    bad_since_s: float | None
    crossing: float | None


class Ended(Event, frozen=True, array_like=True):
    """The job is over in one datacenter: what its managers say, and numbers that can be merged."""

    datacenter: str
    status: JobStatus
    reason: str = ""
    results: bytes = b""
    states: dict[str, bytes] = {}
    late_s: float = 0.0  # its load began so long after that of the first datacenter


class Lost(Event, frozen=True, array_like=True):
    """Nothing was heard of a datacenter for too long. `states` are its numbers as last heard."""

    datacenter: str
    reason: str
    states: dict[str, bytes] = {}
    at_s: float = 0.0  # of its load, as far as it was told


class Withdrawn(Event, frozen=True, array_like=True):
    """A datacenter that was lost is heard again, and runs nothing of the job any more."""

    datacenter: str


class Completed(Event, frozen=True, array_like=True):
    status: JobStatus
    reason: str
    results: bytes


AnyEvent = Created | Commanded | Begun | Told | Judged | Ended | Lost | Withdrawn | Completed

encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[AnyEvent] = msgspec.msgpack.Decoder(AnyEvent)


def decode(data: bytes) -> AnyEvent:
    return _decoder.decode(data)


def request_of(event: AnyEvent) -> str:
    match event:
        case Created(digest=digest):
            return f"created {digest}"
        case Commanded(steer=steer):
            return f"command {steer.command_id}"
        case Begun():
            return "begun"
        case Judged():
            return f"judged {event}"
        case Told(datacenter=name, requests=requests):
            return f"told {name} {requests}"
        case Ended(datacenter=name) | Lost(datacenter=name):
            return f"over {name}"
        case Withdrawn(datacenter=name):
            return f"withdrawn {name}"
        case Completed():
            return "completed"
