"""Was the load generator the bottleneck? One sentence if so, and what to do about it.

Numbers from a saturated generator describe the generator. Every tool has this limit; few say
when it was reached.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.metrics.results import CoreUse

# Above 90 % of its core a single-threaded loop queues work: waiting grows as 1 / (1 - use).
BUSY = 0.90
# A ramp saturates only towards its end, where it matters; a busy start-up is shorter than this.
BUSY_SHARE_MIN = 0.25
# A loop this late adds as much to the latencies it reports; healthy loops stay below 5 ms.
LAG_P99_MS_MAX = 50.0


def saturation(
    core_use: Sequence[CoreUse],
    *,
    dropped: int = 0,
    iterations: int = 0,
    open_model: bool = False,
) -> str:
    """The verdict, or "" when the generator kept up.

    `dropped` are the arrivals an open model could not start and `iterations` those it did. A core
    that several workflows shared is told by each of them and counts once.
    """
    not_started = ""
    if open_model and dropped:
        share = dropped / (dropped + iterations)
        not_started = f"{dropped:,} of {dropped + iterations:,} arrivals ({share:.1%})"
    busy = [use for use in core_use if use.cpu_mean >= BUSY or use.busy_share >= BUSY_SHARE_MIN]
    if busy:
        cores, all_cores = ({use.core for use in uses} for uses in (busy, core_use))
        share = max(use.busy_share for use in busy)
        lost = f" and {not_started} could not be started" if not_started else ""
        return (
            f"The load generator was the bottleneck: {len(cores)} of {len(all_cores)} cores "
            f"ran above {BUSY:.0%} CPU for {share:.0%} of the time{lost}, so the target may be "
            "faster than these numbers; add cores (-w) or machines, or do less work per step."
        )
    late = [use for use in core_use if use.lag_p99_ms > LAG_P99_MS_MAX]
    if late:
        worst = max(late, key=lambda use: use.lag_p99_ms)
        return (
            f"The load generator could not keep time: its event loop was up to "
            f"{worst.lag_p99_ms:.0f} ms late (99th percentile) although its CPU had room, so "
            "latencies include that delay; look for blocking calls in the steps or other "
            "programs on this machine."
        )
    if not_started:
        return (
            f"The planned rate was not reached: {not_started} could not be started because every "
            "virtual user was busy; raise max_vus, or take it that the target is too slow for "
            "this rate."
        )
    return ""
