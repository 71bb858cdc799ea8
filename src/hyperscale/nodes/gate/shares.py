"""What one datacenter is asked to run: the whole test, or its share of one load.

In both cases it knows its number among the datacenters, so that rows of data, numbers and dice of
users are its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hyperscale.nodes.protocol.jobs import Body
from hyperscale.workload.apportion import apportion
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import Load, split_by


def body_in(body: Body, datacenters: Mapping[str, int], name: str) -> Body:
    """Raises ValueError where the load cannot be shared so."""
    number = list(datacenters).index(name)
    workflows = tuple(_in_datacenter(facts, datacenters, number) for facts in body.workflows)
    shares = datacenters.values() if is_split(datacenters) else [1] * len(datacenters)
    return msgspec.structs.replace(body, workflows=workflows, among=(number, *shares))


def in_place(asked: Mapping[str, int], chosen: Sequence[str]) -> dict[str, int]:
    """Who was chosen in place of one that was asked for has its share; the others keep theirs."""
    others = [name for name in chosen if name not in asked]
    found = {}
    for name, share in asked.items():
        if name in chosen:
            found[name] = share
        elif others:
            found[others.pop(0)] = share
    return found | dict.fromkeys(others, 0)


def is_split(datacenters: Mapping[str, int]) -> bool:
    return any(datacenters.values())


def vus_in(vus: int, datacenters: Mapping[str, int]) -> dict[str, int]:
    """How many of so many users each datacenter has when a job is scaled while it runs. Raises
    ValueError where one would have none."""
    if not is_split(datacenters):
        return dict.fromkeys(datacenters, vus)
    found = dict(zip(datacenters, apportion(vus, list(datacenters.values())), strict=True))
    for name, users in found.items():
        if users < 1:
            raise ValueError(f"{vus} virtual users leave none for {name} ({_shown(datacenters)})")
    return found


def _in_datacenter(
    facts: WorkflowFacts, datacenters: Mapping[str, int], number: int
) -> WorkflowFacts:
    if not facts.is_test:
        return facts
    loads = _loads(facts, datacenters)
    before = sum(load.peak_vus for load in loads[:number])
    return msgspec.structs.replace(facts, load=loads[number], first_vu=before)


def _loads(facts: WorkflowFacts, datacenters: Mapping[str, int]) -> list[Load]:
    if not is_split(datacenters):
        return [facts.load] * len(datacenters)
    try:
        return split_by(facts.load, list(datacenters.values()))
    except ValueError as error:
        raise ValueError(f"{facts.name}: {error} ({_shown(datacenters)})") from None


def _shown(datacenters: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={share}" for name, share in datacenters.items())
