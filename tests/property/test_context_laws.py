"""What a workflow begins with: named last wins, then the highest core; when is of no account."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.records import Dispatched, Part, PartEnded, Placement, Started
from hyperscale.cluster.jobs.state import ReplicatedState
from hyperscale.engine.messages import Stamped, Values, handed_on, received
from hyperscale.nodes.manager import dispatch, part_end
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.nodes.protocol.parts import PartEnd
from tests.unit.nodes.manager.cases import FACTS, JOB, submitted

KEYS = st.sets(st.sampled_from("abcd"))
# For each dependency: what its setup() wrote, and what each of its cores wrote.
LEFT = st.lists(st.tuples(KEYS, st.lists(KEYS, min_size=1, max_size=4)), min_size=1, max_size=4)
Left = list[tuple[set[str], list[set[str]]]]


def written(keys: set[str], core: int, text: str, dice: random.Random) -> Values:
    """With stamps as workers of the first previews sent them, from clocks that disagree."""
    return {
        key: Stamped(dice.randrange(100), core, f"{text} {key}".encode()) for key in sorted(keys)
    }


def expected(left: Left) -> dict[str, bytes]:
    found = {}
    for number, (setup, cores) in enumerate(left):
        found |= {key: f"{number} setup {key}".encode() for key in setup}
        for core, keys in enumerate(cores):
            found |= {key: f"{number} core {core} {key}".encode() for key in keys}
    return found


def plain(values: Values) -> dict[str, bytes]:
    return {key: one.value for key, one in values.items()}


@given(LEFT, st.randoms(use_true_random=False))
def test_here(left: Left, dice: random.Random) -> None:
    came = []
    for number, (setup, cores) in enumerate(left):
        wrote = [written(k, c, f"{number} core {c}", dice) for c, k in enumerate(cores)]
        dice.shuffle(wrote)
        came.append(handed_on(written(setup, 0, f"{number} setup", dice), wrote))
    assert plain(received(came)) == expected(left)


@given(LEFT, st.randoms(use_true_random=False))
def test_there(left: Left, dice: random.Random) -> None:
    """The same from the records of a cluster, each core a part that ends when it likes."""
    names = [f"W{number}" for number in range(len(left))]
    last = msgspec.structs.replace(FACTS, name="Last", depends=tuple(names))
    facts = [*(msgspec.structs.replace(FACTS, name=name) for name in names), last]
    dice.shuffle(facts)
    body = Body(workflows=tuple(facts), source=b"", overrides=b"")
    replicated = ReplicatedState()
    apply(replicated, submitted(SubmitJob(job_id=JOB, body=msgspec.msgpack.encode(body))))
    ends: list[PartEnded] = []
    for number, (setup, cores) in enumerate(left):
        name, fence = names[number], Fence(1, 1, 1)
        parts = [Part(JOB, name, core) for core in range(len(cores))]
        placed = [Placement(p, fence, f"w{p.number}", 1, p.number, 1) for p in parts]
        assert apply(replicated, Dispatched(JOB, 0.1, name, len(cores), tuple(placed)))
        wrote = dispatch.encode_values(written(setup, 0, f"{number} setup", dice))
        assert apply(replicated, Started(JOB, 0.2, name, wrote))
        for part, keys in zip(parts, cores, strict=True):
            core = part.number
            end = PartEnd(
                part=part,
                fence=fence,
                worker=f"w{core}",
                outcome="completed",
                context=written(keys, core, f"{number} core {core}", dice),
            )
            result = part_end.encode_end(end)
            ends.append(PartEnded(JOB, 1.0, part, fence, end.worker, "completed", 1.0, result))
    dice.shuffle(ends)
    assert all(apply(replicated, end) for end in ends)
    where = Placement(Part(JOB, "Last", 0), Fence(1, 2, 1), "w0", 1, 0, 1)
    sent = dispatch.dispatch_of(body, replicated.jobs[JOB], where, 1, False, 1)
    assert plain(sent.context) == expected(left)
