"""Which executors a worker has: ours, and those that installed packages bring.

A package offers one under the entry point group `hyperscale.executors`: the name is the kind, the
value a callable without arguments that gives an Executor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from hyperscale.errors import BadInput
from hyperscale.scheduler.telemetry.hook import NO_TELEMETRY, Telemetry
from hyperscale.scheduler.worker.executors.executor import Executor
from hyperscale.scheduler.worker.executors.orphans import Children

GROUP: Final = "hyperscale.executors"


class Executors(Mapping[str, Executor]):
    def __init__(self, by_kind: Mapping[str, Executor], children: Children | None = None) -> None:
        self._children = children or Children()
        self._by_kind = dict(sorted(by_kind.items()))

    def __getitem__(self, kind: str) -> Executor:
        return self._by_kind[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_kind)

    def __len__(self) -> int:
        return len(self._by_kind)

    async def close(self) -> None:
        await asyncio.gather(*(executor.close() for executor in self._by_kind.values()))
        await asyncio.to_thread(self._children.close)


def open_executors(
    python_allow: Sequence[str] = (),
    command: bool = False,
    telemetry: Telemetry = NO_TELEMETRY,
    *,
    loadtest_dir: str = "",
    http_allow: Sequence[str] = (),
    processes: Path | None = None,
) -> Executors:
    """Without `loadtest_dir` tests are those of the working directory. With `processes`, a
    directory, those of jobs end when this one is killed. Raises BadInput."""
    from hyperscale.scheduler.worker.executors.http import HttpExecutor
    from hyperscale.scheduler.worker.executors.loadtest import LoadtestExecutor
    from hyperscale.scheduler.worker.executors.python import PythonExecutor
    from hyperscale.scheduler.worker.executors.reach import Reach

    tests = Path(loadtest_dir).resolve()
    if not tests.is_dir():
        raise BadInput(f"--loadtest-dir {loadtest_dir} is not a directory")
    children = Children(processes)
    by_kind: dict[str, Executor] = {
        "http": HttpExecutor(telemetry, Reach(http_allow)),
        "loadtest": LoadtestExecutor(tests, children),
        "python": PythonExecutor(python_allow, children),
    }
    if command:
        from hyperscale.scheduler.worker.executors.command import CommandExecutor

        by_kind["command"] = CommandExecutor(children)
    for point in entry_points(group=GROUP):
        if point.name in by_kind or point.name == "command":
            raise BadInput(
                f"{point.value} wants to be the executor {point.name!r}, which is taken",
                "uninstall that package or have its entry point renamed",
            )
        by_kind[point.name] = point.load()()
    return Executors(by_kind, children)
