"""What one datacenter is asked to run: the whole test, or its share of one load.

In both cases it knows its number among the datacenters, so that rows of data and dice of users are
its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hyperscale.nodes.protocol.jobs import Body
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import Load, split_by


def body_in(body: Body, datacenters: Mapping[str, int], name: str) -> Body:
    """Raises ValueError where the load cannot be shared so."""
    number = list(datacenters).index(name)
    workflows = tuple(
        msgspec.structs.replace(facts, load=_share(facts, datacenters, number))
        for facts in body.workflows
    )
    return msgspec.structs.replace(body, workflows=workflows, among=(number, len(datacenters)))


def is_split(datacenters: Mapping[str, int]) -> bool:
    return any(datacenters.values())


def vus_in(vus: int, datacenters: Mapping[str, int], name: str) -> int:
    """How many of so many users a datacenter has when a job is scaled while it runs."""
    if not is_split(datacenters):
        return vus
    names, shares = list(datacenters), list(datacenters.values())
    end = sum(shares[: names.index(name) + 1])
    first = end - datacenters[name]
    return max(1, vus * end // sum(shares) - vus * first // sum(shares))


def _share(facts: WorkflowFacts, datacenters: Mapping[str, int], number: int) -> Load:
    if not is_split(datacenters) or not facts.is_test:
        return facts.load
    try:
        return split_by(facts.load, list(datacenters.values()))[number]
    except ValueError as error:
        raise ValueError(f"{facts.name}: {error}") from None
