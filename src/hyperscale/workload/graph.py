"""Order in a graph of names: which must end before which, for steps and for workflows alike.

A layer holds the nodes whose longest path from a root is equal. Distance by breadth-first search
would put a node beside one of its own dependencies when a shorter path exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# node -> the nodes that must end before it
Graph = Mapping[str, Sequence[str]]


def layers(graph: Graph) -> list[list[str]]:
    """Longest-path layers, each in the order of `graph`. The graph must have no cycle."""
    depth = _depths(graph)
    assert len(depth) == len(graph), "layers() needs an acyclic graph whose names are all defined"
    result: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in graph:
        result[depth[node]].append(node)
    return result


def stages(graph: Graph) -> list[list[str]]:
    """What a virtual user runs one after another; the nodes of one stage run concurrently.

    Roots run alone in definition order, because steps without declared dependencies read as a
    script. Deeper layers run together, because their dependencies are declared.
    """
    ordered = layers(graph)
    if not ordered:
        return []
    return [[root] for root in ordered[0]] + ordered[1:]


def find_cycle(graph: Graph) -> list[str] | None:
    """A cycle as `[a, b, a]` (a waits for b, b waits for a), or None."""
    settled = _depths(graph)
    blocked = [node for node in graph if node not in settled]
    if not blocked:
        return None
    path: list[str] = []
    node = blocked[0]
    while node not in path:
        path.append(node)
        node = next(name for name in graph[node] if name in graph and name not in settled)
    return [*path[path.index(node) :], node]


def _depths(graph: Graph) -> dict[str, int]:
    """Depth of each node that no cycle blocks (Kahn's algorithm)."""
    dependants: dict[str, list[str]] = {node: [] for node in graph}
    waiting: dict[str, int] = {}
    for node, dependencies in graph.items():
        known = {name for name in dependencies if name in graph}
        waiting[node] = len(known)
        for name in known:
            dependants[name].append(node)
    depth = {node: 0 for node, count in waiting.items() if count == 0}
    ready = list(depth)
    for node in ready:
        for dependant in dependants[node]:
            waiting[dependant] -= 1
            if waiting[dependant] == 0:
                depth[dependant] = 1 + max(
                    depth[name] for name in graph[dependant] if name in graph
                )
                ready.append(dependant)
    return depth
