"""All numbers of an election, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionSettings:
    heartbeat_interval_s: float = 0.5
    """Six chances to renew within one lease: the lease survives five lost rounds."""

    lease_s: float = 3.0
    """How long a voter's promise lasts on its own clock."""

    clock_drift_max: float = 0.01
    """Largest relative error of any voter's monotonic clock. Crystals stay below 0.0002 and
    clocks being slewed below 0.0005; 1 % costs 60 ms of each lease."""

    lease_slack_s: float = 0.05
    """Taken off a lease on top of drift, so that it ends strictly before, not together with."""

    election_delay_min_s: float = 3.0
    """At least a lease: a voter never campaigns against a promise it may have made."""

    election_delay_max_s: float = 6.0
    """Spread against duels; one lease wide, several times a network round trip."""

    first_delay_max_s: float = 1.0
    """A voter without a past campaigns within this: enough to find the others, and to be found."""

    retry_delay_min_s: float = 0.5
    retry_delay_max_s: float = 2.0
    """Pause after a failed campaign. Short, because a pre-vote disturbs nobody."""

    ballot_timeout_s: float = 2.0
    """Leaves a voter's disk over a second to write its vote, and a winner lease to renew."""

    ballot_resend_s: float = 0.25
    """Silent voters are asked again this often: one lost datagram must not cost a campaign."""

    lhm_step_s: float = 0.25
    """Extra delay per point of local health score, two seconds at most: the healthiest wins."""

    lhm_leader_max: float = 4.0
    """Above this score a voter leaves candidacy to others."""

    lhm_severe: float = 6.0
    """From here a leader hands over, unless leadership is flapping. Higher than the score to get
    leadership, so that a score around one limit does not swing it to and fro."""

    lhm_critical: float = 8.0
    """From here a leader hands over in any case: the score's maximum."""

    reluctance_s: float = 12.0
    """An overburdened or still syncing voter campaigns this much later: two full election
    delays of silence mean that no better voter can win."""

    reluctance_step_s: float = 1.0
    """And this much per point of health score: when all are overburdened the healthiest leads."""

    flap_changes: int = 4
    flap_window_s: float = 60.0
    """Four changes of leadership within a minute are flapping."""

    flap_cooldown_s: float = 60.0
    """No voluntary handover for this long after flapping; elections are never held back."""

    held_messages_max: int = 256
    """Messages waiting for the disk; beyond it the oldest is lost, as on the network."""

    def __post_init__(self) -> None:
        problems = [
            message
            for wrong, message in (
                (self.heartbeat_interval_s <= 0, "heartbeat_interval_s must be positive"),
                (not 0 <= self.clock_drift_max < 0.5, "clock_drift_max must be in [0, 0.5)"),
                (self.lease_slack_s < 0, "lease_slack_s must not be negative"),
                (
                    self.trusted_s(self.lease_s) < 2 * self.heartbeat_interval_s,
                    "lease_s less drift and slack must cover two heartbeats",
                ),
                (
                    self.election_delay_min_s < self.lease_s,
                    "election_delay_min_s must be at least lease_s",
                ),
                (
                    self.election_delay_max_s <= self.election_delay_min_s,
                    "election_delay_max_s must be above election_delay_min_s",
                ),
                (
                    self.ballot_timeout_s >= self.trusted_s(self.lease_s),
                    "ballot_timeout_s must be shorter than a lease",
                ),
                (
                    self.retry_delay_max_s <= self.retry_delay_min_s,
                    "retry_delay_max_s must be above retry_delay_min_s",
                ),
            )
            if wrong
        ]
        if problems:
            raise ValueError("; ".join(problems))

    def trusted_s(self, promise_s: float) -> float:
        """How much of a promise, measured on another clock, a leader may count on by its own.

        A promise of P local seconds made by the fastest clock lasts P/(1+d) true seconds; a span
        of S local seconds on the slowest clock lasts S/(1-d). S = P(1-d)/(1+d) makes them equal.
        """
        drift = self.clock_drift_max
        return promise_s * (1 - drift) / (1 + drift) - self.lease_slack_s
