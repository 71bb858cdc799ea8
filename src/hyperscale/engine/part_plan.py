"""How a part of a workflow is cut into slices, one for each generator process of its machine.

A workflow may run on several machines, each with some of its cores. User numbers, rows of data,
arrivals and shares of the load are those of the whole workflow, whoever runs them. A local run is
the case of one part with all cores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from hyperscale.engine.messages import Prepare, Values
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import ClosedVUs, Load, RampingVUs, ShapedVUs, left_over, split

# Iterations a lost generator may have made since its last report: it fences itself before that.
UNREPORTED_S = 10.0
# Cores are not equally fast; one of them may have used more rows than its share.
UNEVEN = 1.25


class PartPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a part's generator processes are told besides the workflow's facts."""

    source: bytes
    overrides: bytes
    total_cores: int  # of the whole workflow; this part has some of them, from `first_core` on
    first_core: int = 0
    context: Values = {}
    used: dict[str, Values] = {}
    run_setup: bool = True
    seed: int | None = None
    env: dict[str, str] = {}
    http_debug: str = ""
    trace_share: float = 0.0
    memory_mb: int = 0
    # A part that goes on elsewhere: from which load time, and what was done before in all attempts.
    attempt: int = 1
    resume_at_s: float = 0.0
    iterations_done: int = 0
    left_out: int = 0  # of these, to be made all the same; the rows of their data are used up
    secrets: list[str] = []  # names in `env` whose values nobody may read
    worker: str = ""  # the machine's name in a cluster
    among: tuple[int, ...] = (0, 1)  # which datacenter this is, and the share of each


def slices(facts: WorkflowFacts, plan: PartPlan, cores: int) -> list[Prepare]:
    """What each generator is told; fewer than cores when the load has no more shares for this part.
    A part with none keeps one core idle where there is something to tear down."""
    shares = split(facts.load, plan.total_cores)
    first, last = plan.first_core, min(plan.first_core + cores, len(shares))
    mine: Mapping[int, Load] = dict(enumerate(shares[first:last], first))
    if plan.attempt > 1:
        left = left_over(list(mine.values()), plan.iterations_done - plan.left_out)
        mine = {core: load for core, load in zip(mine, left, strict=True) if load is not None}
    idle = not mine and facts.tears_down
    if idle:
        mine = {len(shares) - 1: shares[-1]}
    rows_used = _rows_used(plan, shares[first:last])
    datacenter, *datacenters = plan.among
    return [
        Prepare(
            source=plan.source,
            overrides=plan.overrides,
            workflow=facts.name,
            load=load,
            core=core,
            cores=len(shares),
            first_vu=facts.first_vu + sum(share.peak_vus for share in shares[:core]),
            context=plan.context,
            used=plan.used,
            run_setup=plan.run_setup and number == 0,
            seed=plan.seed,
            env=plan.env,
            http_debug=plan.http_debug,
            trace_share=plan.trace_share,
            resume_at_s=plan.resume_at_s,
            rows_used=rows_used,
            memory_mb=plan.memory_mb,
            idle=idle,
            worker=plan.worker,
            secrets=plan.secrets,
            among=plan.among,
            rank=core * len(datacenters) + datacenter,
        )
        for number, (core, load) in enumerate(mine.items())
    ]


def users_by_core(load: Load, cores: int, vus: int) -> list[int]:
    """How many users each core has when a load is scaled to `vus` while it runs.

    It depends on nothing but these, so that all parts of a workflow agree. As few users as can be
    change their core: those that come go where few are, those that go leave where many are. Only
    a load by time may leave a core without users; arrivals and iterations of a core are nobody
    else's, so it keeps one.
    """
    planned = [share.peak_vus for share in split(load, cores)]
    grows = vus > sum(planned)
    bound = max if grows else min

    def at(level: int) -> int:
        return sum(bound(users, level) for users in planned)

    low, high = 0, max(max(planned), vus)
    while low < high:  # the highest level that takes no more users than there are
        middle = (low + high + 1) // 2
        low, high = (middle, high) if at(middle) <= vus else (low, middle - 1)
    found = [bound(users, low) for users in planned]
    left = vus - sum(found)
    for core, users in enumerate(planned):
        if left and found[core] == low and (grows or users > low):
            found[core] += 1
            left -= 1
    least = 0 if isinstance(load, ClosedVUs | RampingVUs | ShapedVUs) else 1
    return [max(users, least) for users in found]


def _rows_used(plan: PartPlan, shares: list[Load]) -> int:
    """How many rows one core may have used before: rather too many than one twice."""
    losses = plan.attempt - 1
    if not losses or not shares:
        return 0
    reported = plan.iterations_done / len(shares)
    rate = reported / plan.resume_at_s if plan.resume_at_s else 0.0
    in_flight = max(share.peak_vus for share in shares)
    return math.ceil(UNEVEN * reported + losses * (UNEVEN * rate * UNREPORTED_S + in_flight))
