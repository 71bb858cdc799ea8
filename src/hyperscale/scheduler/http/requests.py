"""What clients may send, checked field by field, and turned into the scheduler's own records."""

from __future__ import annotations

import json
import shlex
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    model_validator,
)

from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.instants import Instant, instant_of
from hyperscale.scheduler.queue.identity import KEY_LENGTH_MAX
from hyperscale.scheduler.queue.spec import (
    CAPABILITIES_MAX,
    DELAY_S_MAX,
    NAME_LENGTH_MAX,
    PRIORITY_DEFAULT,
    RETRIES_MAX,
    TAGS_MAX,
    JobSpec,
    RetryPolicy,
    clamp_priority,
    normal_capabilities,
)
from hyperscale.scheduler.schedules.cron import DstPolicy
from hyperscale.scheduler.schedules.schedule import (
    JITTER_S_MAX,
    RUN_ALL_CAP_MAX,
    Misfire,
    MisfirePolicy,
    Overlap,
    ScheduleDefinition,
)
from hyperscale.scheduler.worker.executors.executor import check_nested

EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
"""Instants are exact, and zones are known, well beyond these."""
YEAR_S: Final = 365 * DELAY_S_MAX
CRON_CHARS_MAX: Final = 1000
PAYLOAD_KEYS_MAX: Final = 256
WHOLE_MAX: Final = 2**31 - 1

LABEL_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,62}$"
ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$"
"""A label that fits into a path."""
_OURS: Final = frozenset({"loadtest", "http", "python", "command"})
_KIND_BY_KEY: Final = {"file": "loadtest", "url": "http", "call": "python", "argv": "command"}


def _in_range(moment: datetime) -> datetime:
    if not EARLIEST <= moment < LATEST:
        raise ValueError(f"must lie between {EARLIEST.year} and {LATEST.year}")
    return moment


def _printable(text: str) -> str:
    if not text.strip() or any(unicodedata.category(c) == "Cc" for c in text):
        raise ValueError("needs visible characters and no control characters")
    return text


Moment = Annotated[AwareDatetime, AfterValidator(_in_range)]
Label = Annotated[str, Field(pattern=LABEL_PATTERN)]
Identifier = Annotated[str, Field(pattern=ID_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX), AfterValidator(_printable)]
Seconds = Annotated[float, Field(gt=0, le=YEAR_S, strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Work(_Strict):
    """What to run; the same for a job and for each run of a schedule."""

    kind: Label | None = Field(
        None, description="the executor: loadtest, http, python, command; else told by the payload"
    )
    payload: dict[str, Any] = Field(max_length=PAYLOAD_KEYS_MAX)
    priority: int = Field(
        PRIORITY_DEFAULT,
        ge=-WHOLE_MAX,
        le=WHOLE_MAX,
        description="lower first; outside 0..2000 it is adjusted and the answer says so",
        strict=True,
    )
    max_retries: int = Field(3, ge=0, le=RETRIES_MAX, strict=True)
    capabilities: list[Label] = Field([], max_length=CAPABILITIES_MAX)
    tags: dict[Label, Annotated[str, Field(max_length=NAME_LENGTH_MAX)]] = Field(
        {}, max_length=TAGS_MAX
    )
    timeout_s: Seconds | None = None
    stall_timeout_s: Seconds | None = None

    def spec(self, name: str) -> JobSpec:
        payload = dict(self.payload)
        if self.kind in (None, "command") and "argv" not in payload and "command" in payload:
            payload["argv"] = _argv(payload.pop("command"))
        kind = self.kind or next((k for key, k in _KIND_BY_KEY.items() if key in payload), None)
        if kind is None:
            raise InvalidJob(
                "the payload does not tell what kind of job this is",
                f"give kind, or one of {', '.join(_KIND_BY_KEY)} or command in the payload",
            )
        texts = {key: _text(key, value) for key, value in payload.items()}
        if kind in _OURS:
            check_nested(texts)
        return JobSpec(
            name=name,
            kind=kind,
            payload=texts,
            priority=clamp_priority(self.priority),
            capabilities=normal_capabilities(self.capabilities),
            tags=dict(self.tags),
            timeout_s=self.timeout_s,
            stall_timeout_s=self.stall_timeout_s,
            retry=RetryPolicy(max_retries=self.max_retries),
        )

    def adjustment(self) -> str | None:
        used = clamp_priority(self.priority)
        return None if used == self.priority else f"priority {self.priority} was adjusted to {used}"


class JobRequest(Work):
    """One run, now or at `run_at`; with `cron_expression` a schedule of runs."""

    name: Name
    job_id: Identifier | None = None
    cron_expression: str | None = Field(None, max_length=CRON_CHARS_MAX)
    timezone: str = Field("UTC", max_length=64)
    run_at: Moment | None = None
    idempotency_key: str | None = Field(None, min_length=1, max_length=KEY_LENGTH_MAX)
    dedup_by_content: StrictBool = False
    dedup_window_s: Annotated[float, Field(gt=0, le=YEAR_S, strict=True)] = 3600.0

    @model_validator(mode="after")
    def _one_time(self) -> JobRequest:
        if self.cron_expression is not None and self.run_at is not None:
            raise ValueError("give cron_expression or run_at, not both")
        if self.cron_expression is not None and (self.job_id or self.dedup_by_content):
            raise ValueError("job_id and dedup_by_content are for single runs")
        return self

    def definition(self) -> ScheduleDefinition:
        return ScheduleDefinition(
            name=self.name,
            job=self.spec(self.name),
            cron=self.cron_expression or "",
            zone=self.timezone,
        )


class MisfireRequest(_Strict):
    policy: Misfire = Misfire.RUN_ONCE
    cap: int = Field(10, ge=1, le=RUN_ALL_CAP_MAX, strict=True)
    grace_s: float = Field(60.0, ge=0, le=YEAR_S, strict=True)


class ScheduleBody(_Strict):
    name: Name | None = None
    cron: str | None = Field(None, max_length=CRON_CHARS_MAX)
    run_at: Moment | None = None
    timezone: str = Field("UTC", max_length=64)
    dst: DstPolicy = DstPolicy.DEBIAN
    misfire: MisfireRequest = MisfireRequest(cap=10, grace_s=60.0)
    overlap: Overlap = Overlap.ALLOW
    jitter_s: float = Field(0.0, ge=0, le=JITTER_S_MAX, strict=True)
    start_at: Moment | None = None
    end_at: Moment | None = None
    paused: StrictBool = False
    job: Work

    def definition(self, fallback_name: str) -> ScheduleDefinition:
        name = self.name or fallback_name
        return ScheduleDefinition(
            name=name,
            job=self.job.spec(name),
            cron=self.cron or "",
            run_at=instant(self.run_at),
            zone=self.timezone,
            dst=str(self.dst),
            misfire=MisfirePolicy(
                kind=self.misfire.policy, cap=self.misfire.cap, grace_s=self.misfire.grace_s
            ),
            overlap=self.overlap,
            jitter_s=self.jitter_s,
            start_at=instant(self.start_at),
            end_at=instant(self.end_at),
            paused=self.paused,
        )


class ScheduleRequest(ScheduleBody):
    id: Identifier


class ScheduleChange(ScheduleBody):
    version: int = Field(ge=1, le=WHOLE_MAX, description="the one that was read", strict=True)


class ScheduleEdit(_Strict):
    """Only what shall change. A new `job` replaces the whole of the old one."""

    cron: str | None = Field(None, max_length=CRON_CHARS_MAX)
    run_at: Moment | None = None
    timezone: str | None = Field(None, max_length=64)
    dst: DstPolicy | None = None
    misfire: MisfireRequest | None = None
    overlap: Overlap | None = None
    jitter_s: float | None = Field(None, ge=0, le=JITTER_S_MAX, strict=True)
    start_at: Moment | None = None
    end_at: Moment | None = None
    job: Work | None = None
    version: int | None = Field(None, ge=1, le=WHOLE_MAX, strict=True)
    """The one that was read; none: whatever it is now."""

    def applied(self, known: ScheduleDefinition) -> ScheduleDefinition:
        said = self.model_fields_set
        changed: dict[str, Any] = {}
        for field in ("cron", "overlap", "jitter_s"):
            if getattr(self, field) is not None:
                changed[field] = getattr(self, field)
        if self.timezone is not None:
            changed["zone"] = self.timezone
        if self.dst is not None:
            changed["dst"] = str(self.dst)
        for field in ("run_at", "start_at", "end_at"):
            if field in said:
                changed[field] = instant(getattr(self, field))
        if self.cron is not None and "run_at" not in said:
            changed["run_at"] = None
        if self.run_at is not None and self.cron is None:
            changed["cron"] = ""
        if self.misfire is not None:
            changed["misfire"] = MisfirePolicy(
                kind=self.misfire.policy, cap=self.misfire.cap, grace_s=self.misfire.grace_s
            )
        if self.job is not None:
            changed["job"] = self.job.spec(known.name)
        return msgspec.structs.replace(known, **changed)


class PreviewRequest(_Strict):
    cron: str = Field(max_length=CRON_CHARS_MAX)
    timezone: str = Field("UTC", max_length=64)
    dst: DstPolicy = DstPolicy.DEBIAN
    count: int = Field(10, ge=1, le=100, strict=True)


class BackfillRequest(_Strict):
    start: Moment
    end: Moment


def instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else instant_of(moment)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        value = json.dumps(value, separators=(",", ":"))
    try:
        f"{key}{value}".encode()
    except UnicodeEncodeError as error:  # JSON can say half of a character, and no store keeps it
        raise InvalidJob(f"{key!r} in the payload is no text: {error}") from error
    return str(value)


def _argv(command: Any) -> Any:
    """Words as a shell would split them; no shell ever sees them."""
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidJob(f"the command cannot be split into words: {error}") from error
