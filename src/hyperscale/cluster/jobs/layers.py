"""Which workflows of a job wait for which: layers by longest path."""

from __future__ import annotations

from collections.abc import Sequence

from hyperscale.cluster.jobs.records import Needs


def layers(workflows: Sequence[Needs]) -> tuple[tuple[str, ...], ...]:
    """Names by layer; within a layer in the order they were given. A workflow stands one layer
    after the last of those it depends on. Raises ValueError with a sentence for a person."""
    depends = {needs.name: needs.depends for needs in workflows}
    if len(depends) != len(workflows):
        raise ValueError("two workflows have the same name")
    for name, others in depends.items():
        for other in others:
            if other not in depends:
                raise ValueError(f"{name} depends on {other}, which is not part of the job")
    waits_for = {name: len(set(others)) for name, others in depends.items()}
    dependents: dict[str, list[str]] = {name: [] for name in depends}
    for name, others in depends.items():
        for other in set(others):
            dependents[other].append(name)
    found: list[tuple[str, ...]] = []
    while ready := [name for name, count in waits_for.items() if not count]:
        found.append(tuple(ready))
        for name in ready:
            del waits_for[name]
        for name in ready:
            for dependent in dependents[name]:
                waits_for[dependent] -= 1
    if waits_for:
        raise ValueError(f"{', '.join(waits_for)} wait for each other")
    return tuple(found)
