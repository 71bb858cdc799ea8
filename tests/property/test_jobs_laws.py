"""Laws of the jobs core's parts, over whatever hypothesis can think of."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.coverage import coverage, sentences
from hyperscale.cluster.jobs.deadlines import Deadlines
from hyperscale.cluster.jobs.extensions import Extensions
from hyperscale.cluster.jobs.layers import layers
from hyperscale.cluster.jobs.lifecycle import TRANSITIONS
from hyperscale.cluster.jobs.pool import Pool
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Extended,
    Failed,
    Finished,
    GivenUp,
    JobRecord,
    Needs,
    Part,
    PartEnded,
    PartLost,
    Placement,
    Returned,
    Started,
    Steered,
    Submitted,
    TimedOut,
    TornDown,
)
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import ReplicatedState

JOBS = st.sampled_from(["j1", "j2"])
NAMES = st.sampled_from(["a", "b"])
WORKERS = st.sampled_from(["w1", "w2"])
AGES = st.floats(-1.0, 100.0)
FENCES = st.builds(Fence, st.integers(1, 2), st.integers(1, 4), st.integers(1, 3))
PARTS = st.builds(Part, JOBS, NAMES, st.integers(0, 2))
PLACEMENTS = st.builds(
    Placement, PARTS, FENCES, WORKERS, st.just(1), st.integers(0, 3), st.integers(1, 3)
)
SUBMITTED = st.builds(
    lambda job, tears_down: Submitted(
        job,
        0.0,
        "t",
        tuple(
            Needs(n, n == "a", "auto", d, 1, 10.0, 20.0, tears_down=tears_down)
            for n, d in (("a", ()), ("b", ("a",)))
        ),
        100.0,
        b"",
    ),
    JOBS,
    st.booleans(),
)
ANY_DISPATCHED = st.builds(
    Dispatched, JOBS, AGES, NAMES, st.integers(0, 6),
    st.lists(PLACEMENTS, max_size=3).map(tuple), st.booleans(),
)  # fmt: skip
DISPATCHED = ANY_DISPATCHED.map(
    lambda record: msgspec.structs.replace(
        record,
        placements=tuple(
            msgspec.structs.replace(p, part=Part(record.job_id, record.workflow, p.part.number))
            for p in record.placements
        ),
    )
)
"""As a leader would write it: all parts are of the workflow it names."""

RECORDS: st.SearchStrategy[JobRecord] = st.one_of(
    SUBMITTED,
    st.one_of(DISPATCHED, ANY_DISPATCHED),
    st.builds(Returned, JOBS, AGES, NAMES, st.just("r"), st.lists(st.integers(0, 2)).map(tuple)),
    st.builds(Started, JOBS, AGES, NAMES, st.just(b"c")),
    st.builds(
        PartEnded, JOBS, AGES, PARTS, FENCES, WORKERS,
        st.sampled_from(["completed", "failed", "cancelled", "cut off"]), AGES, st.just(b"r"),
    ),
    st.builds(PartLost, JOBS, AGES, PARTS, FENCES, WORKERS, AGES, st.just(1), st.just(b"k"),
              st.just("died")),
    st.builds(GivenUp, JOBS, AGES, PARTS, st.just("late")),
    st.builds(Failed, JOBS, AGES, NAMES, st.just("x")),
    st.builds(TornDown, JOBS, AGES, NAMES),
    st.builds(Steered, JOBS, AGES, st.sampled_from(["cancel", "stop", "pause", "resume", "scale"])),
    st.builds(Extended, JOBS, AGES, WORKERS, AGES),
    st.builds(TimedOut, JOBS, AGES, st.just("late")),
    st.builds(Finished, JOBS, AGES, st.just("completed"), st.just(""), st.just(b"")),
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(RECORDS, max_size=40))
def test_any_records_in_any_order(records: list[JobRecord]) -> None:
    """Nothing raises, twins agree, lives follow their table, cores in use are those of parts."""
    one, twin = ReplicatedState(), ReplicatedState()
    for record in [*map(_submission, ("j1", "j2")), *records]:
        states = {
            (job.job_id, name): workflow.lifecycle.state
            for job in one.jobs.values()
            for name, workflow in job.workflows.items()
        }
        over = {job.job_id for job in one.jobs.values() if job.is_over}
        took_effect = apply(one, record)
        assert apply(twin, record) is took_effect
        assert not (took_effect and record.job_id in over)
        _check(one, states)
    assert one == twin
    for job in one.jobs.values():
        assert 0.0 <= coverage(job) <= 1.0
        assert isinstance(sentences(job), list)
        job.outcome()


def _submission(job: str) -> Submitted:
    needs = (
        Needs("a", True, "auto", (), 1, 10.0, 20.0, tears_down=True),
        Needs("b", False, "auto", ("a",), 1, None, 20.0),
    )
    return Submitted(job, 0.0, "t", needs, 100.0, b"")


def _check(replicated: ReplicatedState, before: dict[tuple[str, str], object]) -> None:
    in_use = []
    for job in replicated.jobs.values():
        for name, workflow in job.workflows.items():
            life = workflow.lifecycle
            for step in life.history:
                assert step.target in TRANSITIONS[step.source]
            if life.history:
                assert life.history[-1].target is life.state
            for part in workflow.parts.values():
                assert part.live is None or not part.is_final
                in_use += [p for p in (part.live, part.holding) if p is not None]
            assert (job.job_id, name) in before or not life.history
    booked = [p for held in replicated.by_worker.values() for p in held.values()]
    assert sorted(booked, key=str) == sorted(in_use, key=str)


@given(st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.floats(0, 100)))))
def test_deadlines_come_up_once_and_in_time(calls: list[tuple[int, float | None]]) -> None:
    deadlines = Deadlines()
    model: dict[tuple[str, ...], float] = {}
    for name, at in calls:
        concern = (str(name),)
        deadlines.set(concern, at)
        if at is None:
            model.pop(concern, None)
        else:
            model[concern] = at
    assert deadlines.next() == min(model.values(), default=None)
    due = deadlines.due(50.0)
    assert sorted(due) == sorted(c for c, at in model.items() if at <= 50.0)
    assert deadlines.due(50.0) == []
    assert deadlines.next() == min((at for at in model.values() if at > 50.0), default=None)


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=6),
    st.lists(st.integers(1, 20), max_size=5),
    st.sets(st.integers(0, 5)),
    st.integers(),
)
def test_choices_never_exceed_what_is_free(
    totals: list[int], wanted: list[int], excluded: set[int], seed: int
) -> None:
    def choose() -> list[list[tuple[str, int]] | None]:
        pool = Pool(JobSettings(), ReplicatedState(), random.Random(seed))
        for number, total in enumerate(totals):
            pool.register(0.0, f"w{number}", 1, total, total, draining=False)
        draft = pool.draft(0.0, {f"w{number}" for number in excluded})
        found = [draft.take(cores) for cores in wanted]
        return [None if f is None else [(w.name, n) for w, n in f] for f in found]

    left = {f"w{number}": total for number, total in enumerate(totals)}
    for cores, chosen in zip(wanted, choose(), strict=True):
        if chosen is None:
            assert sum(left.values()) < cores
            continue
        assert sum(n for _, n in chosen) == cores
        assert len({name for name, _ in chosen}) == len(chosen)
        for name, n in chosen:
            left[name] -= n
            assert left[name] >= 0
    assert choose() == choose()


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 1), st.booleans()), max_size=20))
def test_extensions_are_five_at_most_and_warned_of_once(
    asks: list[tuple[float, float, bool]],
) -> None:
    extensions = Extensions(JobSettings())
    now = 0.0
    grants = []
    for wait_s, progress, suspect in asks:
        now += wait_s
        grants.append(extensions.ask(now, progress, suspect))
    granted = [grant for grant in grants if grant.granted]
    assert [grant.seconds for grant in granted] == [15, 7.5, 3.75, 1.875, 1][: len(granted)]
    assert sum(grant.warning for grant in grants) == (len(granted) >= 4)
    assert all(grant.denial for grant in grants if not grant.granted)
    assert (extensions.evict_at() is not None) == (len(granted) == 5)


@given(st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=8))
def test_a_layer_comes_after_all_it_depends_on(depends: list[set[int]]) -> None:
    needs = [
        Needs(f"w{n}", True, "auto", tuple(f"w{o}" for o in sorted(others) if o < n), 1, 1.0, 2.0)
        for n, others in enumerate(depends)
    ]
    found = layers(needs)
    depth = {name: layer for layer, names in enumerate(found) for name in names}
    assert len(depth) == len(needs)
    for need in needs:
        expected = 1 + max((depth[other] for other in need.depends), default=-1)
        assert depth[need.name] == expected
