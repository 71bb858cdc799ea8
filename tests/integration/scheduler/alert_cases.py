"""For each alert rule what it must fire on, and what comes near and must not, as samples for
`promtool test rules`: a series, and its value at each scrape."""

from __future__ import annotations

from typing import NamedTuple

EVERY = "17s"
"""Not a divisor of any range: then Prometheus extrapolates, as it does in real life."""
LONG = 250
"""Scrapes: 70 minutes."""


class Case(NamedTuple):
    breach: dict[str, str]
    calm: dict[str, str]
    at: str = "20m"


def grows(by: int) -> str:
    return f"0+{by}x{LONG}"


def stays(value: float) -> str:
    return f"{value}+0x{LONG}"


def steps(to: int, begins: int = 130) -> str:
    """From 0, by one each scrape."""
    return f"0+0x{begins} 1+1x{to - 1} {to}+0x{LONG - begins - to}"


def spread(name: str, labels: str, **below: int) -> dict[str, str]:
    """A histogram: of 100 in each interval so many are below each bound."""
    bounds = {bound.removeprefix("le_").replace("_", "."): many for bound, many in below.items()}
    series = {f'{name}_bucket{{{labels}le="{le}"}}': grows(many) for le, many in bounds.items()}
    return series | {f'{name}_bucket{{{labels}le="+Inf"}}': grows(100)}


def completions(failed: int) -> dict[str, str]:
    name = "scheduler_job_completion_duration_seconds_count"
    labels = 'component="store",priority="normal",success='
    return {
        f'{name}{{{labels}"false"}}': grows(failed),
        f'{name}{{{labels}"true"}}': grows(100 - failed),
    }


def checks(name: str, bad: str, good: str, many: int) -> dict[str, str]:
    return {
        f'{name}{{component="store",result="{bad}"}}': grows(many),
        f'{name}{{component="store",result="{good}"}}': grows(1000 - many),
    }


COMPLETED = "scheduler_job_completion_duration_seconds"
OF_COMPLETED = 'component="store",priority="normal",success="true",'
BEATEN = "scheduler_heartbeat_latency_seconds"
OF_BEATEN = 'component="store",success="true",'
PROMOTED = "scheduler_delayed_promotion_lag_seconds"
SUBMITTED = (
    'scheduler_job_submissions_total{component="store",priority="normal",job_type="command"}'
)
DEDUPS = "scheduler_deduplication_checks_total"
TOKENS = "scheduler_fencing_token_checks_total"

CASES = {
    "SchedulerSubmissionsHigh": Case({SUBMITTED: grows(18_000)}, {SUBMITTED: grows(16_000)}),
    "SchedulerJobsSlow": Case(
        spread(COMPLETED, OF_COMPLETED, le_30_0=98, le_60_0=100),
        spread(COMPLETED, OF_COMPLETED, le_10_0=98, le_30_0=100, le_60_0=100),
    ),
    "SchedulerJobsFail": Case(completions(failed=6), completions(failed=4)),
    "SchedulerWorkersFew": Case(
        {"scheduler_active_workers": stays(1)}, {"scheduler_active_workers": stays(2)}
    ),
    "SchedulerHeartbeatsSlow": Case(
        spread(BEATEN, OF_BEATEN, le_1_0=90, le_5_0=94),
        spread(BEATEN, OF_BEATEN, le_1_0=90, le_5_0=96),
    ),
    "SchedulerElectionsOften": Case(
        {"scheduler_leader_elections_total": steps(2)},
        {"scheduler_leader_elections_total": steps(1)},
        at="61m",
    ),
    "SchedulerNobodyLeads": Case({"scheduler_leading": stays(0)}, {"scheduler_leading": stays(1)}),
    "SchedulerDuplicatesMany": Case(
        checks(DEDUPS, "duplicate", "new", 510), checks(DEDUPS, "duplicate", "new", 490)
    ),
    "SchedulerPromotionLate": Case(
        spread(PROMOTED, "", le_60_0=94, le_300_0=100),
        spread(PROMOTED, "", le_60_0=96, le_300_0=100),
    ),
    "SchedulerTicksLate": Case(
        {"scheduler_tick_lateness_seconds": stays(6)},
        {"scheduler_tick_lateness_seconds": stays(4)},
    ),
    "SchedulerStaleReports": Case(
        checks(TOKENS, "refused", "accepted", 11), checks(TOKENS, "refused", "accepted", 9)
    ),
    "SchedulerDeadLetters": Case(
        {"scheduler_dead_letter_depth": steps(12)},
        {"scheduler_dead_letter_depth": steps(9)},
        at="61m",
    ),
    "SchedulerStoreAway": Case(
        {"scheduler_network_partitions_total": steps(5, begins=60)},
        {"scheduler_network_partitions_total": steps(2, begins=60)},
    ),
    "SchedulerStopped": Case(
        {"scheduler_emergency_stop": stays(1)}, {"scheduler_emergency_stop": stays(0)}
    ),
}
