"""All that a decision depends on, as plain data. Durations, never times of a clock."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

Policy = Literal["strict", "prefer", "any"]
POLICIES: Final = get_args(Policy)


class Wish(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody asked for."""

    job_id: str  # decides between equals
    count: int = 0  # of datacenters; 0: those that are named, or all
    named: tuple[str, ...] = ()
    policy: Policy = "any"
    excluded: tuple[str, ...] = ()
    cores: int = 0  # that it needs at least, in each

    @property
    def kind(self) -> str:
        """Wishes of one kind have their choices kept together."""
        return f"{self.count or len(self.named)} {self.policy} {' '.join(sorted(self.named))}"


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One datacenter. `health` and `why` as `cluster.datacenters` judges it."""

    name: str
    health: int = 0
    why: str = ""
    reachable: bool = True
    rtt_s: float | None = None  # None: never measured
    rtt_error_s: float = 0.0
    samples: int = 0
    age_s: float = 0.0  # of what is known of it
    cores: int = 0
    cores_free: int = 0
    pending: int = 0  # of those free, given away here and not told by its leader yet
    queued: int = 0
    load: int = 0
    managers: int = 1
    managers_open: int = 0  # behind an open circuit
    full_s: float = 0.0  # for so long it has had no free core
    failed_s: float | None = None  # since it refused or lost a job that was sent there


class RoutingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All of it is in each log line: a default of a later version decides nothing of before."""

    # Load: each of these at its worst doubles the score of a datacenter.
    util_weight: float = 1.0
    queue_weight: float = 1.0
    circuit_weight: float = 1.0
    overload_weight: float = 1.0
    queue_smoothing: float = 10.0  # so many jobs that wait are half of the worst
    load_max: float = 4.0

    # Round trips: what is rarely exceeded, and a default where nothing was measured.
    rtt_default_s: float = 0.100
    rtt_error_default_s: float = 0.050
    rtt_min_s: float = 0.001
    rtt_max_s: float = 2.0
    error_min_s: float = 0.001
    error_max_s: float = 0.200
    k_sigma: float = 2.0

    # How good a measured round trip is.
    samples_enough: int = 10
    error_good_s: float = 0.020
    ttl_s: float = 300.0
    quality_weight: float = 0.5
    quality_penalty_max: float = 2.0
    error_for_routing_s: float = 0.050  # above it distances decide nothing,
    error_hysteresis: float = 1.5  # once they did, not before so many times that

    # Who was chosen stays chosen, unless there is a reason.
    hold_down_s: float = 30.0
    improvement: float = 0.8  # a better one has to be below so much of the score
    degraded: float = 1.5  # so many times the score that it was chosen with, for so long,
    degraded_confirm_s: float = 30.0  # end the hold
    full_confirm_s: float = 5.0  # cores that are taken for a moment are no reason
    cooldown_s: float = 60.0
    cooldown_penalty: float = 2.0
    alike: float = 0.10  # scores within this are equal, and the job's id decides


class Held(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A datacenter that was chosen before, and still is the choice for wishes of this kind."""

    name: str
    held_s: float
    score: float  # when it was chosen
    worse_s: float | None = None  # for so long it has been `degraded` times that


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    wish: Wish
    candidates: tuple[Candidate, ...]
    held: tuple[Held, ...] = ()
    by_distance: bool = False  # the decision before this one was
    settings: RoutingSettings = RoutingSettings()
