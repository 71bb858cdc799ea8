"""All numbers of running jobs, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hyperscale.cluster.jobs.records import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    retries_max: int = 3
    """Of a part, after its worker was lost: four attempts in all."""

    reschedule_s: float = 8.0
    """A silent worker's part is placed elsewhere this long after it was last answered over TCP,
    whatever probes say of it. It ends its load 6 s after it asked what was answered last, so two
    seconds are left for clocks and timers."""

    register_s: float = 10.0
    """A new leader waits this long for a worker of whose death nobody tells. Its load has ended by
    then; what it has to tell of it may take a little longer to arrive."""

    silence_s: float = 4.0
    """A registered worker that reports nothing for this long takes no new work. It reports every
    second."""

    unreached_s: float = 3.0
    """A worker to which no connection can be made for this long is not under command, though it
    may report: it is not answered any more, and ends its load. One whose machine refuses the
    connection has no process there, and is not waited for at all."""

    dispatch_s: float = 300.0
    """How long work may wait although nothing that runs could make room for it."""

    return_after_s: float = 5.0
    """A workflow whose parts cannot all be prepared gives its cores back after this, so that two
    of them never wait for each other."""

    squeeze_after_s: float = 1.0
    """A lost part waits this long for a free core, then shares one that its job has already: as
    long as a worker needs to tell of a core that has become free. Also how often it looks again."""

    squeeze_cpu_percent: float = 80.0
    """A worker takes no lost part beside what it runs if that would use more of its CPU than this,
    by what its present load uses. Below 80 % a worker is well."""

    prepare_s: float = 300.0
    """From dispatch to prepared: loading code, resolving arguments, setup()."""

    held_s: float = 300.0
    """A job of gates waits so long, on its cores, for the word that its load begins everywhere: a
    minute longer than gates wait for the slowest datacenter."""

    refusal_pause_min_s: float = 0.5
    refusal_pause_max_s: float = 10.0
    """A worker that refused a part is left alone this long, doubling with each refusal."""

    teardown_s: float = 60.0
    """For teardown(), from the moment it is asked for."""

    cancel_confirm_s: float = 5.0
    """A worker that has not ended a cancelled part after this is reported by its name."""

    limit_grace_s: float = 15.0
    """A worker ends a part at its limit by itself; the leader gives up on it this much later."""

    stuck_s: float = 120.0
    """No counter moves for this long although work is running."""

    stalled_s: float = 10.0
    """No counter moves for this long: worth a look. A hundred times the reporting interval."""

    stuck_evict_s: float = 60.0
    """A stuck worker is drained first, and its parts are taken away after this."""

    evict_share: float = 0.5
    evict_population_min: int = 4
    evict_hold_s: float = 30.0
    """When this share of at least so many workers fails together it is the network, or us: wait,
    but no longer than this."""

    orphan_scan_s: float = 120.0
    """How often every worker is asked for what it holds."""

    orphan_misses: int = 2
    orphan_age_s: float = 10.0
    """A part is taken for lost when its worker left it out of two full lists, the first of them
    this long after the dispatch."""

    append_retry_s: float = 0.5
    """After a record could not be written."""

    append_unknown_s: float = 5.0
    """After this nobody knows whether it was: the timeout of a quorum."""

    queue_jobs_max: int = 1_000
    jobs_max: int = 10_000
    queue_mb_max: int = 256
    """Jobs waiting, jobs remembered, and what the waiting ones take: half of what the records hold,
    so that those that run have room to end. Beyond these a submission is refused."""

    reserve_after_s: float = 30.0
    """Smaller jobs may overtake a job that does not fit for this long; then free cores are kept
    for it."""

    overtakers_max: int = 64
    """How many jobs behind the first are looked at."""

    retry_after_min_s: float = 1.0
    retry_after_max_s: float = 60.0

    completed_kept_s: float = 300.0
    failed_kept_s: float = 3600.0
    key_kept_s: float = 300.0
    """After its end a job is remembered for one of the first two, by how it ended, but never for
    less than the third: while its id and key are known, a submission that is repeated finds it."""

    dead_worker_kept_s: float = 900.0

    extension_base_s: float = 30.0
    extension_min_s: float = 1.0
    extensions_max: int = 5
    extension_grace_s: float = 10.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not value > 0 and one.name != "retries_max":
                raise ValueError(f"{one.name} must be above zero, not {value:g}")
        if self.retries_max < 0:
            raise ValueError(f"retries_max must not be below zero, not {self.retries_max}")
        if self.evict_share > 1:
            raise ValueError(f"evict_share is a share, at most 1, not {self.evict_share:g}")
        if self.stalled_s >= self.stuck_s:
            raise ValueError("stalled_s must be below stuck_s")
        if self.refusal_pause_min_s > self.refusal_pause_max_s:
            raise ValueError("refusal_pause_min_s must not be above refusal_pause_max_s")
        if self.retry_after_min_s > self.retry_after_max_s:
            raise ValueError("retry_after_min_s must not be above retry_after_max_s")


def keep_s(settings: JobSettings, status: JobStatus) -> float:
    """How long a job is remembered after it ended like that."""
    kept_s = settings.completed_kept_s if status == "completed" else settings.failed_kept_s
    return max(kept_s, settings.key_kept_s)
