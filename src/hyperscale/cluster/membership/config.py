"""Every number of the membership protocol, with its unit and its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from hyperscale.cluster.coordinates import VivaldiConfig


@dataclass(frozen=True, slots=True)
class MembershipConfig:
    cluster: str = "default"  # members of another cluster are refused by the datagram header

    # Probing: every node probes one other per interval, so load per node is constant in N.
    probe_interval_s: float = 1.0
    probe_timeout_s: float = 0.5  # above any round trip on earth; scaled by local health
    indirect_probes: int = 3  # one proxy is fragile: three miss together 1 time in 125 at 20 % loss
    nack_share: float = 0.8  # a proxy answers within this share of the requester's remaining wait

    # Local health (Lifeguard): 0 is healthy; timeouts and intervals grow by a quarter per point.
    health_score_max: int = 8
    health_step: float = 0.25
    health_decay_s: float = 10.0  # one point back after this long without a bad event
    lag_s: float = 0.25  # half a probe timeout: a tick this late proves that we slept, not they
    long_lag_s: float = 1.0

    # Suspicion: min = mult x max(1, log10(n+1)) x interval; max = ratio x min, at most the cap.
    suspicion_mult: float = 4.0
    suspicion_max_ratio: float = 6.0
    suspicion_cap_s: float = 30.0
    suspicion_confirmations: int = 3  # independent accusers that bring the wait down to min

    # Dissemination.
    gossip_interval_s: float = 0.2  # only while there is news
    gossip_fanout: int = 3
    # Each update leaves a node mult x ceil(ln(n+1)) times (SWIM, 2002): at 100 nodes 15 times, so
    # that one node in three million misses it; with memberlist's 8 it was one in three thousand.
    retransmit_mult: float = 3.0
    news_max: int = 4_096  # subjects in the queue; one per member, newest wins
    datagram_bytes_max: int = 1_200  # below every common path MTU, whatever the cluster size
    seal_bytes_max: int = 112  # header, longest sender name and tag of a sealed datagram
    heartbeat_bytes_max: int = 512

    # Full-state exchange over a stream.
    exchange_interval_s: float = 30.0
    exchange_scale_above: int = 32  # above this many members the interval grows by log2(n/32)
    reconnect_interval_s: float = 10.0  # one dead member is pinged this often: heals partitions

    # Forgetting.
    dead_reaped_s: float = 900.0
    tombstone_s: float = 3_600.0  # how long after reaping a stale "alive" is still refused
    tombstones_max: int = 4_096
    members_max: int = 10_000
    relays_max: int = 1_024  # probes we run for others at one time

    # Peers never heard first-hand (see confirmation.py and roles.py).
    unconfirmed_warning_s: float = 60.0
    unconfirmed_tombstone_s: float = 600.0
    unconfirmed_backoff_max_s: float = 30.0
    confirmation_interval_s: float = 5.0
    confirmation_pings_per_interval: int = 5  # keeps a mass start from becoming a ping storm
    seed_retry_s: float = 1.0  # doubles up to the maximum below; a seed is never given up
    seed_retry_max_s: float = 30.0

    # Own incarnation: reserved on disk in blocks so that a refutation never waits for the disk.
    incarnation_block: int = 64
    leave_s: float = 5.0  # longest time spent telling others that we leave

    buddy: bool = True  # tell a suspect that it is suspected in the very ping it must answer
    coordinates: VivaldiConfig = field(default_factory=VivaldiConfig)

    def __post_init__(self) -> None:
        assert self.probe_timeout_s < self.probe_interval_s
        assert self.heartbeat_bytes_max + self.seal_bytes_max < self.datagram_bytes_max
        assert self.suspicion_max_ratio >= 1.0
        assert 0.0 < self.nack_share < 1.0

    def retransmits(self, live: int) -> int:
        return int(self.retransmit_mult * max(1, math.ceil(math.log(live + 1))))

    def exchange_interval(self, live: int) -> float:
        if live <= self.exchange_scale_above:
            return self.exchange_interval_s
        return self.exchange_interval_s * (1.0 + math.log2(live / self.exchange_scale_above))


def plain_swim(config: MembershipConfig) -> MembershipConfig:
    """The protocol without Lifeguard: the baseline of the false-positive experiment."""
    return replace(
        config, health_score_max=0, suspicion_confirmations=0, buddy=False, lag_s=math.inf
    )
