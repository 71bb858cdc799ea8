"""What dependants get of the workflows before them, and what that costs the leader."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.records import Dispatched, GivenUp, PartEnded, Started
from hyperscale.cluster.jobs.state import ReplicatedState
from hyperscale.engine.messages import Stamped
from hyperscale.nodes.manager import contexts, part_end
from hyperscale.nodes.manager.contexts import Contexts
from hyperscale.nodes.protocol.parts import PartEnd
from tests.unit.nodes.manager.cases import FACTS, JOB, end, placement, submitted
from tests.unit.nodes.manager.lone_manager import LoneManager, play
from tests.unit.nodes.manager.test_dispatch import ask

DEPENDANTS = [
    msgspec.structs.replace(FACTS, name=name, depends=("Shop",)) for name in ("A", "B", "C")
]


def test_each_end_is_read_once_however_many_parts_depend_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: Counter[bytes] = Counter()
    real = contexts._ends

    class Counting:
        def decode(self, data: bytes) -> object:
            reads[data] += 1
            return real.decode(data)

    monkeypatch.setattr(contexts, "_ends", Counting())

    async def story(lone: LoneManager) -> None:
        order = await lone.running(FACTS, *DEPENDANTS)
        order_no = Stamped(1, 0, b"order")
        await lone.tell(
            PartEnd(
                part=order.part,
                fence=order.fence,
                worker="w1",
                outcome="completed",
                measured_s=60.0,
                context={"order": order_no},
            )
        )
        await lone.until(lambda: len(lone.dispatched()) == 4)
        assert all(sent.context == {"order": order_no} for sent in lone.dispatched()[1:])

    play(story)
    assert list(reads.values()) == [1]


def test_parts_that_end_later_are_not_missed() -> None:
    record = submitted(ask(FACTS, *DEPENDANTS))
    replicated, seen = ReplicatedState(), Contexts()
    parts = [placement(0), placement(1)]
    apply(replicated, record)
    apply(replicated, Dispatched(JOB, 0.1, "Shop", 4, tuple(parts)))
    job, left = replicated.jobs[JOB], []
    for number, where in enumerate(parts):
        result = part_end.encode_end(end(where, 1, context={f"k{number}": Stamped(1, 0, b"")}))
        apply(
            replicated,
            PartEnded(JOB, 1.0, where.part, where.fence, where.worker, "completed", 1.0, result),
        )
        left.append(sorted(seen.of(job, "Shop")[0]))
    assert left == [["k0"], ["k0", "k1"]]


def test_a_part_cut_off_with_no_time_left_hands_on_what_it_told() -> None:
    replicated, seen, where = ReplicatedState(), Contexts(), placement(0)
    told = part_end.encode_end(end(where, 1, provided={"key": Stamped(1, 0, b"")}))
    apply(replicated, submitted(ask(FACTS, *DEPENDANTS)))
    apply(replicated, Dispatched(JOB, 0.1, "Shop", 4, (where,)))
    apply(replicated, Started(JOB, 0.2, "Shop", b""))
    apply(
        replicated,
        PartEnded(JOB, 60.0, where.part, where.fence, where.worker, "cut off", 60.0, told),
    )
    job = replicated.jobs[JOB]
    assert seen.of(job, "Shop") == ({}, {})  # it may yet go on elsewhere
    apply(replicated, GivenUp(JOB, 61.0, where.part, "its time is over"))
    assert sorted(seen.of(job, "Shop")[1]) == ["key"]
