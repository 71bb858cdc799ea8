"""What one routing decision costs, by the number of datacenters: CPU time of the pure function.

    python benchmarks/routing.py            10, 100 and 1,000 datacenters
    python benchmarks/routing.py 100 --log  and what it adds to write the line of the log

The goal is at most 1 ms for 100 datacenters.
"""

from __future__ import annotations

import random
import sys
import time
from statistics import median

import msgspec

from hyperscale.cluster.routing import Candidate, Held, Snapshot, Wish, choose

COUNTS = (10, 100, 1_000)
GOAL_S = 0.001
ROUNDS = 300


def snapshot_of(datacenters: int, dice: random.Random) -> Snapshot:
    """A world as it is on an ordinary day: most are well, some are full, a few are ill."""
    candidates = tuple(
        Candidate(
            name=f"dc{number:03d}",
            health=dice.choices((0, 1, 2, 3), (80, 10, 7, 3))[0],
            why="as the dice say",
            rtt_s=dice.uniform(0.001, 0.3),
            rtt_error_s=dice.uniform(0.0005, 0.02),
            samples=15,
            age_s=dice.uniform(0.0, 2.0),
            cores=dice.randint(8, 512),
            cores_free=dice.randint(1, 512),
            queued=dice.randint(0, 5),
            managers=3,
        )
        for number in range(datacenters)
    )
    held = tuple(Held(name=one.name, held_s=60.0, score=1.0) for one in candidates[:3])
    wish = Wish(job_id=f"{dice.getrandbits(60):015x}", count=min(3, datacenters), cores=4)
    return Snapshot(wish=wish, candidates=candidates, held=held, by_distance=True)


def measure(datacenters: int, *, with_log: bool) -> tuple[float, float]:
    """Median and 99th percentile, in seconds."""
    dice = random.Random(datacenters)
    snapshots = [snapshot_of(datacenters, dice) for _ in range(ROUNDS)]
    taken = []
    for snapshot in snapshots:
        begun = time.process_time()
        choose(snapshot)
        if with_log:
            msgspec.json.encode(msgspec.to_builtins(snapshot))
        taken.append(time.process_time() - begun)
    taken.sort()
    return median(taken), taken[int(len(taken) * 0.99)]


def main() -> None:
    with_log = "--log" in sys.argv
    counts = [int(word) for word in sys.argv[1:] if word.isdigit()] or COUNTS
    print("datacenters    median       p99")
    for count in counts:
        middle, high = measure(count, with_log=with_log)
        goal = f"   {middle / GOAL_S:.2f} of the 1 ms allowed" if count == 100 else ""
        print(f"{count:11,}  {middle * 1e6:6.0f}µs  {high * 1e6:6.0f}µs{goal}")


if __name__ == "__main__":
    main()
