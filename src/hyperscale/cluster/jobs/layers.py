"""Which workflows of a job wait for which: layers by longest path, as C-38 expects them."""

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
    depth: dict[str, int] = {}
    waiting = dict(depends)
    while waiting:
        ready = [name for name, others in waiting.items() if all(o in depth for o in others)]
        if not ready:
            raise ValueError(f"{', '.join(waiting)} wait for each other")
        for name in ready:
            depth[name] = 1 + max((depth[other] for other in waiting.pop(name)), default=-1)
    return tuple(
        tuple(name for name in depends if depth[name] == layer)
        for layer in range(1 + max(depth.values(), default=-1))
    )
