"""Whatever a flow does: its requests are those that the target counted, its runs those it made."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hyperscale import Workflow, step
from hyperscale.workload.scope import fold_ids
from tests.integration.engine.in_process import run_slice

Node = tuple[Any, ...]  # what to do, and with what
REFUSED = "http://127.0.0.1:1/"
STEPS = ("outer", "middle", "inner")
VUS, ITERATIONS = 2, 4


class Interpreter(Workflow):
    vus = VUS
    iterations = ITERATIONS
    graceful_stop = "5s"
    tree: tuple[Node, ...] = ()

    async def flow(self) -> None:
        await self.do(self.tree)

    @step()
    async def outer(self, nodes: tuple[Node, ...]):
        return await self.do(nodes)

    @step(group="some")
    async def middle(self, nodes: tuple[Node, ...]):
        return await self.do(nodes)

    @step()
    async def inner(self, nodes: tuple[Node, ...]):
        return await self.do(nodes)

    async def do(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            await getattr(self, f"do_{node[0]}")(*node[1:])

    async def do_get(self, path: str) -> None:
        await self.client.http.get(path)

    async def do_refused(self) -> None:
        await self.client.http.get(REFUSED)

    async def do_rest(self) -> None:
        await asyncio.sleep(0)

    async def do_raise(self) -> None:
        raise ValueError("here")

    async def do_skip(self) -> None:
        self.skip("the tree says so")

    async def do_stop(self) -> None:
        self.stop_iteration()

    async def do_step(self, name: str, nodes: tuple[Node, ...]) -> None:
        await getattr(self, name)(nodes)

    async def do_loop(self, times: int, nodes: tuple[Node, ...]) -> None:
        for _ in range(times):
            await self.do(nodes)

    async def do_try(self, nodes: tuple[Node, ...]) -> None:
        with contextlib.suppress(Exception):
            await self.do(nodes)

    async def do_gather(self, branches: tuple[tuple[Node, ...], ...]) -> None:
        ends = await asyncio.gather(*map(self.do, branches), return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def do_group(self, branches: tuple[tuple[Node, ...], ...]) -> None:
        async with asyncio.TaskGroup() as group:
            for nodes in branches:
                group.create_task(self.do(nodes))


class Raised(Exception):
    """What the model raises: `charged` to a step already, or not yet."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.charged = False


@dataclass
class Model:
    """What the tree says, counted by hand."""

    paths: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    unsent: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    runs_failed: Counter[str] = field(default_factory=Counter)
    interrupted: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    stopped: int = 0

    def iterate(self, nodes: tuple[Node, ...]) -> None:
        try:
            self.do(nodes)
        except Raised as raised:
            if raised.kind != "error":
                self.stopped += 1
            elif not raised.charged:
                self.runs_failed["flow"] += 1

    def do(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            self.one(*node)

    def one(self, kind: str, *given: Any) -> None:
        match kind:
            case "get":
                self.get(given[0])
            case "refused":
                self.unsent += 1
                self.failed += 1
            case "raise":
                raise Raised("error")
            case "skip" | "stop":
                raise Raised(kind)
            case "step":
                self.step(*given)
            case "loop":
                for _ in range(given[0]):
                    self.do(given[1])
            case "try":
                try:
                    self.do(given[0])
                except Raised as raised:
                    if raised.kind != "error":
                        raise
            case "gather" | "group":
                self.gather(given[0])

    def get(self, path: str) -> None:
        self.paths[path] += 1
        self.failed += path.startswith("/status")
        _, _, hops = path.partition("/redirect/")
        if hops and int(hops):
            self.get(f"/redirect/{int(hops) - 1}")

    def step(self, name: str, nodes: tuple[Node, ...]) -> None:
        try:
            self.do(nodes)
        except Raised as raised:
            if raised.kind == "skip":
                self.skipped[name] += 1
                return
            self.runs[name] += 1
            if raised.kind == "error":
                (self.interrupted if raised.charged else self.runs_failed)[name] += 1
                raised.charged = True
            raise
        self.runs[name] += 1

    def gather(self, branches: tuple[tuple[Node, ...], ...]) -> None:
        first = None
        for nodes in branches:
            try:
                self.do(nodes)
            except Raised as raised:
                first = first or raised
        if first is not None:
            raise first


FAILS = (("step", "inner", (("raise",),)),)
PATHS = ["/", "/json", "/items/7", "/status/503", "/status/404", "/redirect/0", "/redirect/2"]
calls = st.one_of(
    st.tuples(st.just("get"), st.sampled_from(PATHS)),
    st.sampled_from([("refused",), ("rest",)]),
)
ends = st.sampled_from([("raise",), ("skip",), ("stop",)])


def several(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[tuple[Node, ...]]:
    return st.lists(nodes, max_size=3).map(tuple)


def deeper(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    branches = st.lists(several(nodes), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.tuples(st.just("step"), st.sampled_from(STEPS), several(nodes)),
        st.tuples(st.just("loop"), st.integers(1, 3), several(nodes)),
        st.tuples(st.just("try"), several(nodes)),
        st.tuples(st.just("gather"), branches),
    )


# Where a branch of a task group raises, what becomes of the others is a matter of moments.
calm = st.recursive(
    calls,
    lambda nodes: st.one_of(
        deeper(nodes),
        st.tuples(st.just("group"), st.lists(several(nodes), min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
trees = several(st.recursive(st.one_of(calls, calls, ends, calm), deeper, max_leaves=14))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(tree=(("step", "outer", (("gather", (FAILS, FAILS)),)),))
@example(tree=(("try", (("step", "outer", (("group", (FAILS,)), ("get", "/"))),)),))
@given(tree=trees)
def test_any_flow_is_counted_as_the_target_counts_it(
    tree: tuple[Node, ...], target: str, reset_stats: Callable[[], Callable[[], dict[str, Any]]]
) -> None:
    stats = reset_stats()
    model = Model()
    for _ in range(ITERATIONS):
        model.iterate(tree)
    ran = run_slice(type("Random", (Interpreter,), {"tree": tree}), target)
    result = ran.result
    assert not ran.done.error
    counted = stats()
    assert result.requests == counted["requests"] == model.paths.total()
    by_name = Counter[str]()
    for each in result.steps:
        for request in each.requests:
            by_name[request.name] += request.count
    by_name += Counter()  # without what was never sent
    assert by_name == _folded(counted["paths"]) == _folded(model.paths)
    assert (result.failed, result.unsent) == (model.failed, model.unsent)
    assert result.iterations == ITERATIONS
    assert result.stopped_iterations == model.stopped
    for name in STEPS:
        (told,) = (each for each in result.steps if each.name == name)
        assert (told.runs, told.runs_failed, told.runs_interrupted, told.skipped) == (
            model.runs[name],
            model.runs_failed[name],
            model.interrupted[name],
            model.skipped[name],
        )
    failing = sum(each.runs_failed for each in result.steps if each.name == "flow")
    assert failing == model.runs_failed["flow"]


def _folded(paths: dict[str, int]) -> Counter[str]:
    found = Counter[str]()
    for path, count in paths.items():
        found[fold_ids(path)] += count
    return found
