"""In which datacenters a job runs, when it may run in more than those it names.

`strict` is those that are named and no others: a test from another place measures something else.
`prefer` takes others in place of those that are not there, `any` takes whichever there are. What
was chosen is committed with the job, and its results say where its load came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from hyperscale.nodes.protocol.jobs import Policy
from hyperscale.nodes.protocol.where import check_where


class Candidate(NamedTuple):
    """A datacenter as this gate sees it now."""

    name: str
    alive: bool = True


class Choose(Protocol):
    """Which `count` of the candidates, the best first; fewer where there are no more. `preferred`
    come before others that are as good. The same input gives the same answer everywhere."""

    def __call__(
        self, candidates: Sequence[Candidate], preferred: Sequence[str], count: int
    ) -> list[str]: ...


def by_name(candidates: Sequence[Candidate], preferred: Sequence[str], count: int) -> list[str]:
    alive = sorted(one.name for one in candidates if one.alive)
    first = [name for name in preferred if name in alive]
    return [*first, *(name for name in alive if name not in first)][:count]


def placed(
    wanted: Mapping[str, int],
    count: int,
    policy: Policy,
    candidates: Sequence[Candidate],
    choose: Choose = by_name,
) -> dict[str, int]:
    """Datacenters with their shares. Raises ValueError, with a sentence for who submits."""
    names = {one.name for one in candidates}
    for name in wanted:
        if name not in names:
            raise ValueError(f"there is no datacenter {name!r}, only {', '.join(sorted(names))}")
    check_where(wanted, count, policy)
    if policy == "strict" and wanted:
        return dict(wanted)
    if not wanted and not count:
        return {one.name: 0 for one in candidates}
    needed = count or len(wanted)
    chosen = choose(candidates, list(wanted), needed)
    if len(chosen) < needed:
        raise ValueError(
            f"it needs {needed} datacenters, and of {len(names)} only {len(chosen)} can take it: "
            f"{', '.join(chosen) or 'none'}"
        )
    return dict(zip(*_in_place(wanted, chosen), strict=True))


def _in_place(wanted: Mapping[str, int], chosen: Sequence[str]) -> tuple[list[str], list[int]]:
    """Who comes in place of a named one has its share; the others keep theirs."""
    free = [name for name in chosen if name not in wanted]
    names = [name if name in chosen else free.pop(0) for name in wanted if name in chosen or free]
    names += free
    return names, [*wanted.values(), *[0] * len(names)][: len(names)]
