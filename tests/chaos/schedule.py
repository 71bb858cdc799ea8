"""What a seed decides: the cluster, the job, and the faults with their times. Nothing runs here.

Managers are named by the role they have when the load begins (`leader`, `follower1`, `follower2`),
because that decides what a fault means, and workers by the order in which their first request
came (`worker1` and so on). Times count from the first request at the target.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

from tests.chaos.loads import Job, Load

Kind = Literal["cut", "stop", "kill", "disk", "generators"]
Protocol = Literal["tcp", "udp", "both"]
# What becomes of a packet: gone, gone by the dice (percent of them), or answered with a reset.
Loss = Literal["all", "30", "60", "85", "reset"]
Edge = tuple[str, str]  # from whom to whom nothing arrives

MANAGERS = ("leader", "follower1", "follower2")
CLIENT = "client"
# A node that was killed, or whose disk was full, is up again this long after it was started.
RESTART_S = 5.0
# One that slept catches up.
WAKE_S = 1.0
# A job must not fail while a majority of managers and a worker live; shorter than this they do.
OUTAGE_S_MAX = 6.0


@dataclass(frozen=True)
class Fault:
    kind: Kind
    at_s: float
    for_s: float = 0.0
    node: str = ""
    edges: tuple[Edge, ...] = ()
    protocol: Protocol = "both"
    loss: Loss = "all"
    # stop and kill: the generators of the worker, too; generators: all of them, not only one
    whole: bool = True
    # stop: the generators alone, while their worker is well
    generators_only: bool = False

    @property
    def until_s(self) -> float:
        return self.at_s + self.for_s

    @property
    def down_until_s(self) -> float:
        after_s = {"kill": RESTART_S, "disk": RESTART_S, "stop": WAKE_S}.get(self.kind, 0.0)
        return self.until_s + after_s

    def sentence(self) -> str:
        when = f"{self.at_s:5.1f} s"
        length = f"for {self.for_s:.1f} s"
        if self.kind == "cut":
            edges = ", ".join(f"{a}>{b}" for a, b in self.edges)
            protocol = "tcp and udp" if self.protocol == "both" else f"{self.protocol} alone"
            how = {"all": "cut", "reset": "refuse"}.get(self.loss, f"lose {self.loss} % of")
            return f"{when}  {how} {edges} ({protocol}) {length}"
        if self.kind == "generators":
            return (
                f"{when}  kill {'all generators' if self.whole else 'one generator'} of {self.node}"
            )
        alone = "" if self.whole or self.node in MANAGERS else ", not its generators"
        if self.generators_only:
            alone = "'s generators"
        verb = {"stop": "SIGSTOP", "kill": "kill -9", "disk": "full disk of"}[self.kind]
        return f"{when}  {verb} {self.node}{alone} {length}"


@dataclass(frozen=True)
class Round:
    name: str
    workers: int
    cores: int
    job: Job
    faults: tuple[Fault, ...]
    # After its planned end a workflow may take this long, and managers wait as long again.
    grace_s: float = 15.0

    @property
    def worker_names(self) -> tuple[str, ...]:
        return worker_names(self.workers)

    def sentences(self) -> list[str]:
        return [
            f"3 managers, {self.workers} workers, cores of each: {self.cores}",
            self.job.sentence(),
            *(fault.sentence() for fault in self.faults),
        ]


def worker_names(count: int) -> tuple[str, ...]:
    return tuple(f"worker{number}" for number in range(1, count + 1))


def draw(seed: int) -> Round:
    rng = random.Random(f"chaos {seed}")
    workers = rng.choice((2, 3))
    job = _job(rng)
    length_s = job.cancel_at_s or job.planned_s
    names = worker_names(workers)
    variant = random.Random(f"chaos variant {seed}")
    count = rng.choice((1, 1, 2, 2, 3))
    faults = [_fault(rng, variant, length_s, names) for _ in range(count)]
    faults.sort(key=lambda fault: fault.at_s)
    return Round(f"seed {seed}", workers, rng.choice((1, 2)), job, tuple(faults))


def outage_s(round_: Round) -> float:
    """The longest time without two managers and a worker that are up and hear each other."""
    moments = sorted({m for fault in round_.faults for m in (fault.at_s, fault.down_until_s)})
    longest_s = out_s = 0.0
    for moment, following in pairwise(moments):
        out_s = 0.0 if _alive_at(round_, moment) else out_s + following - moment
        longest_s = max(longest_s, out_s)
    return longest_s


def _alive_at(round_: Round, moment_s: float) -> bool:
    now = [f for f in round_.faults if f.at_s <= moment_s < f.down_until_s]
    down = {fault.node for fault in now if fault.kind in ("stop", "kill", "disk")}
    cut = {frozenset(edge) for fault in now if fault.kind == "cut" for edge in fault.edges}

    def together(nodes: Iterable[str]) -> bool:
        return not any(frozenset(pair) in cut for pair in combinations(nodes, 2))

    up = [manager for manager in MANAGERS if manager not in down]
    workers = [worker for worker in round_.worker_names if worker not in down]
    return any(together((*pair, worker)) for pair in combinations(up, 2) for worker in workers)


# -- drawing ---------------------------------------------------------------------------------


def _job(rng: random.Random) -> Job:
    shape = rng.choice(("arrivals", "users", "iterations", "chain", "cancelled"))
    if shape == "chain":
        second = rng.choice((_arrivals, _users))
        return Job((_iterations(rng, "First", 6), second(rng, "Second", 8, "First")))
    if shape == "cancelled":
        make = rng.choice((_arrivals, _users))
        return Job((make(rng, "Load", 40),), cancel_at_s=round(rng.uniform(5, 10), 1))
    make = {"arrivals": _arrivals, "users": _users, "iterations": _iterations}[shape]
    return Job((make(rng, "Load", rng.randint(12, 18)),))


def _arrivals(rng: random.Random, name: str, duration_s: int, after: str = "") -> Load:
    return Load(name, "arrivals", rng.randrange(40, 101, 10), duration_s, after=after)


def _users(rng: random.Random, name: str, duration_s: int, after: str = "") -> Load:
    return Load(name, "users", rng.randint(6, 12), duration_s, after=after)


def _iterations(rng: random.Random, name: str, duration_s: int, after: str = "") -> Load:
    users = rng.randint(6, 10)
    return Load(name, "iterations", users * 10 * duration_s, duration_s, users, after)


def _fault(
    rng: random.Random, variant: random.Random, length_s: float, workers: Sequence[str]
) -> Fault:
    """`variant`: dice of their own, so that a seed draws the same nodes and times as ever."""
    kinds: tuple[Kind, ...] = ("cut", "stop", "kill", "disk", "generators")
    kind = rng.choices(kinds, weights=(6, 3, 4, 1, 2))[0]
    at_s = round(rng.uniform(0.5, max(2.0, length_s - 3)), 1)
    for_s = round(rng.choice((rng.uniform(2, 3), rng.uniform(4, 7), rng.uniform(8, 14))), 1)
    if kind == "cut":
        edges = _edges(rng, workers)
        protocols: tuple[Protocol, ...] = ("both", "tcp", "udp")
        protocol = rng.choices(protocols, (4, 3, 2))[0]
        if CLIENT in edges[0]:  # it speaks no UDP
            protocol = "tcp"
        return Fault(kind, at_s, for_s, edges=edges, protocol=protocol, loss=_loss(variant))
    if kind == "generators":
        return Fault(kind, at_s, node=rng.choice(workers), whole=rng.random() < 0.5)
    if kind == "disk":
        return Fault(kind, at_s, for_s, node=rng.choice(MANAGERS))
    node = rng.choice(workers) if rng.random() < 0.6 else rng.choice(MANAGERS)
    whole = rng.random() < 0.6
    alone = kind == "stop" and node in workers and whole and variant.random() < 0.5
    return Fault(kind, at_s, for_s, node=node, whole=whole, generators_only=alone)


def _loss(variant: random.Random) -> Loss:
    kinds: tuple[Loss, ...] = ("all", "30", "60", "85", "reset")
    return variant.choices(kinds, weights=(8, 2, 2, 2, 2))[0]


def _edges(rng: random.Random, workers: Sequence[str]) -> tuple[Edge, ...]:
    """Between one node and some others: both ways, or one."""
    worker, manager = rng.choice(workers), rng.choice(MANAGERS)
    nodes = (*MANAGERS, *workers)
    one, others = rng.choice(
        (
            (worker, MANAGERS),
            (worker, MANAGERS),
            (worker, ("leader",)),
            (worker, [node for node in nodes if node != worker]),
            ("leader", MANAGERS[1:]),
            ("leader", [node for node in nodes if node != "leader"]),
            (manager, [node for node in MANAGERS if node != manager][:1]),
            (manager, list(workers)),
            (CLIENT, ("leader",)),
            (CLIENT, MANAGERS[:2]),
        )
    )
    way = rng.choice(("both", "both", "out", "in"))
    out = [(one, other) for other in others] if way != "in" else []
    into = [(other, one) for other in others] if way != "out" else []
    return tuple(out + into)
