"""What to run: the part of a job that never changes, shared by schedules and instances.

Limits stand here because whoever stores, ships or shows a job relies on them (every queue and
record bounded). Priority: lower first, default 500.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from hyperscale.scheduler.errors import InvalidJob

PRIORITY_BEST: Final = 0
PRIORITY_DEFAULT: Final = 500
PRIORITY_WORST: Final = 2000
PRIORITIES: Final = {"critical": 0, "high": 100, "normal": 500, "low": 1000, "bulk": 2000}

NAME_LENGTH_MAX: Final = 200
PAYLOAD_BYTES_MAX: Final = 64 * 1024
TAGS_MAX: Final = 32
CAPABILITIES_MAX: Final = 16
RETRIES_MAX: Final = 100
DELAY_S_MAX: Final = 86_400.0

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,62}")


class RetryPolicy(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Delay before retry n (1, 2, ...): min(initial * factor^(n-1), max), ± jitter (2, 4, 8,
    then 16 s, ± 50 %)."""

    max_retries: int = 3
    initial_s: float = 2.0
    factor: float = 2.0
    max_s: float = 16.0
    jitter: float = 0.5


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str
    kind: str
    """Which executor runs it: loadtest, http, python, command or a plugin's."""
    payload: dict[str, str] = {}
    """Nested values are JSON inside the string."""
    priority: int = PRIORITY_DEFAULT
    capabilities: tuple[str, ...] = ()
    """Every one must be offered by the worker. Sorted, without repeats."""
    tags: dict[str, str] = {}
    timeout_s: float | None = None
    """From start to kill. None: as long as the worker lives."""
    stall_timeout_s: float | None = None
    """Without progress for this long the job is taken away. None: heartbeats are enough."""
    retry: RetryPolicy = RetryPolicy()


def clamp_priority(priority: int) -> int:
    """Out of range is adjusted, and the answer tells so."""
    return min(PRIORITY_WORST, max(PRIORITY_BEST, priority))


def normal_capabilities(capabilities: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(sorted(set(capabilities)))


@lru_cache(maxsize=1024)
def _is_label(value: str) -> bool:
    """Remembered: kinds and capabilities are few, submissions many."""
    return _LABEL.fullmatch(value) is not None


def check_label(what: str, value: str) -> None:
    if not _is_label(value):
        raise InvalidJob(
            f"{what} {value!r} is not a label",
            "1 to 63 letters, digits or ._:/- and a letter or digit first",
        )


def check_spec(spec: JobSpec) -> JobSpec:
    """The same spec, or InvalidJob naming the field."""
    if not spec.name.strip() or len(spec.name) > NAME_LENGTH_MAX:
        raise InvalidJob(f"job name {spec.name!r} must have 1 to {NAME_LENGTH_MAX} characters")
    check_label("kind", spec.kind)
    if not PRIORITY_BEST <= spec.priority <= PRIORITY_WORST:
        raise InvalidJob(f"priority {spec.priority} is not in {PRIORITY_BEST}..{PRIORITY_WORST}")
    if spec.capabilities:
        _check_capabilities(spec.capabilities)
    if len(spec.tags) > TAGS_MAX:
        raise InvalidJob(f"at most {TAGS_MAX} tags")
    for tag, value in spec.tags.items():
        check_label("tag", tag)
        if len(value) > NAME_LENGTH_MAX:
            raise InvalidJob(f"value of tag {tag!r} is longer than {NAME_LENGTH_MAX}")
    _check_payload(spec.payload)
    _check_timeout("timeout", spec.timeout_s)
    _check_timeout("stall timeout", spec.stall_timeout_s)
    _check_retry(spec.retry)
    return spec


def _check_capabilities(capabilities: tuple[str, ...]) -> None:
    if capabilities != normal_capabilities(capabilities):
        raise InvalidJob("capabilities must be sorted and without repeats")
    if len(capabilities) > CAPABILITIES_MAX:
        raise InvalidJob(f"at most {CAPABILITIES_MAX} capabilities")
    for capability in capabilities:
        check_label("capability", capability)


def _check_payload(payload: Mapping[str, str]) -> None:
    characters = sum(map(len, payload)) + sum(map(len, payload.values()))
    if 4 * characters <= PAYLOAD_BYTES_MAX:  # none has more bytes in UTF-8
        return
    size = sum(len(k.encode()) + len(v.encode()) for k, v in payload.items())
    if size > PAYLOAD_BYTES_MAX:
        raise InvalidJob(f"payload has {size} bytes", f"at most {PAYLOAD_BYTES_MAX}")


def _check_timeout(what: str, seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds <= 365 * DELAY_S_MAX:
        raise InvalidJob(f"{what} {seconds} must be above 0 s and at most a year")


def _check_retry(retry: RetryPolicy) -> None:
    if not 0 <= retry.max_retries <= RETRIES_MAX:
        raise InvalidJob(f"max_retries {retry.max_retries} is not in 0..{RETRIES_MAX}")
    if not 0 <= retry.initial_s <= retry.max_s <= DELAY_S_MAX:
        raise InvalidJob("retry delays need 0 <= initial <= max <= one day")
    if not 1 <= retry.factor <= 100:
        raise InvalidJob(f"retry factor {retry.factor} is not in 1..100")
    if not 0 <= retry.jitter <= 1:
        raise InvalidJob(f"retry jitter {retry.jitter} is not in 0..1")
