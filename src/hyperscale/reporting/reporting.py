"""All reporters of one run: those of `-o URL` and those of the test file.

In this order: `reach` before the load, `beside` while it runs, `conclude` at its end.
Nothing here changes the outcome; what went wrong comes back as errors.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from hyperscale.errors import BadInput, HyperscaleError
from hyperscale.metrics.results import Results
from hyperscale.metrics.spans import Span
from hyperscale.reporting.config import Config
from hyperscale.reporting.custom import CustomReporter, report
from hyperscale.reporting.delivery import Delivery
from hyperscale.reporting.points import Meter
from hyperscale.reporting.registry import config_of
from hyperscale.reporting.reporter import Reporter

EVERY_S = 1.0
# What is reached before the load keeps somebody waiting.
REACH_S = 5.0

Wanted = tuple[Reporter[Any], frozenset[str] | None]


class Watched(Protocol):
    def results(self) -> Results: ...


@runtime_checkable
class Traceable(Protocol):
    """A run of this machine."""

    def trace_steps(self, share: float, on_span: Callable[[Span], None]) -> None: ...


class Reporting:
    def __init__(self, urls: Iterable[str] = (), given: Mapping[str, Any] | None = None) -> None:
        """`given`: what each workflow says in `reporting`. Raises BadInput."""
        configs = list(dict.fromkeys(urls))
        self._wanted: list[Wanted] = [(Reporter(config_of(url)), None) for url in configs]
        self._custom: list[tuple[str, CustomReporter]] = []
        self._delivery: Delivery | None = None
        self._meter: Meter | None = None
        self._add(given or {})

    def _add(self, given: Mapping[str, Any]) -> None:
        found: list[tuple[Config, set[str]]] = []
        for workflow, one in given.items():
            for reporter in _several(workflow, one):
                if isinstance(reporter, CustomReporter):
                    self._custom.append((workflow, reporter))
                    continue
                same = [names for config, names in found if config == reporter]
                if same:
                    same[0].add(workflow)
                else:
                    found.append((reporter, {workflow}))
        for config, names in found:
            whole = names >= given.keys()
            self._wanted.append((Reporter(config), None if whole else frozenset(names)))

    def join(self, other: Reporting) -> None:
        """What `-o` names and the test names as well is one."""
        known = [reporter.config for reporter, _ in self._wanted]
        self._wanted += [wanted for wanted in other._wanted if wanted[0].config not in known]
        self._custom += other._custom

    @property
    def names(self) -> list[str]:
        return [reporter.name for reporter, _ in self._wanted]

    @property
    def trace_share(self) -> float:
        return max((reporter.config.trace_share for reporter, _ in self._wanted), default=0.0)

    def secrets(self) -> Iterator[tuple[str, str]]:
        """What nothing may show, each with a name."""
        for reporter, _ in self._wanted:
            yield from reporter.config.secrets()

    def reach(self) -> list[HyperscaleError]:
        """What stands in the way of sending, as it is now."""
        return asyncio.run(self._reach()) if self._wanted else []

    async def _reach(self) -> list[HyperscaleError]:
        tried = (reporter.reach(REACH_S) for reporter, _ in self._wanted)
        return [error for error in await asyncio.gather(*tried) if error is not None]

    @asynccontextmanager
    async def beside(self, run: Watched, on_trouble: Callable[[str], None]) -> AsyncIterator[None]:
        """While the block carries out the run, live reporters get points of it."""
        live = [wanted for wanted in self._wanted if wanted[0].backend.live]
        if not live:
            yield
            return
        now_s = time.time()
        moment = datetime.fromtimestamp(now_s, UTC).strftime("%Y%m%dT%H%M%SZ")
        self._meter = Meter(f"{moment}-{os.urandom(2).hex()}", now_s)
        if self.trace_share and isinstance(run, Traceable):
            run.trace_steps(self.trace_share, self._meter.span)
        self._delivery = Delivery(live)
        self._delivery.start(on_trouble)
        taking = asyncio.create_task(self._take(run, self._meter, self._delivery))
        try:
            yield
        except BaseException:
            self._delivery.finish(0.0)
            raise
        finally:
            taking.cancel()
            await asyncio.wait({taking})

    async def _take(self, run: Watched, meter: Meter, delivery: Delivery) -> None:
        """At times that do not drift, in the middle of seconds: what is a little late is in the
        same second."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + 0.5 - time.time() % 1.0
        while True:
            due_s = max(due_s + EVERY_S, loop.time())
            await asyncio.sleep(due_s - loop.time())
            delivery.offer(meter.take(run.results(), time.time()))

    def conclude(self, results: Results, *, whole: bool = True) -> list[HyperscaleError]:
        """Send the results, and the last points; what failed. A run that goes on elsewhere is not
        whole: it has no results yet."""
        return asyncio.run(self.concluded(results, whole=whole))

    async def concluded(self, results: Results, *, whole: bool = True) -> list[HyperscaleError]:
        """Reporters at the same time: the wait is for the slowest."""
        by_name = {workflow.name: workflow for workflow in results.workflows}
        last = asyncio.create_task(asyncio.to_thread(self._finish, results))
        sending = [
            reporter.send(_only(results, names))
            for reporter, names in self._wanted
            if whole and (reporter.backend.at_end or self._delivery is None)
        ]
        custom = [
            report(one, by_name[name]) for name, one in self._custom if whole and name in by_name
        ]
        told = await asyncio.gather(*sending, *custom)
        return [*await last, *(error for error in told if error is not None)]

    def _finish(self, results: Results) -> list[HyperscaleError]:
        delivery, meter = self._delivery, self._meter
        if delivery is None or meter is None:
            return []
        delivery.offer(meter.take(results, time.time()))
        return delivery.finish()


def _only(results: Results, names: frozenset[str] | None) -> Results:
    if names is None:
        return results
    kept = [workflow for workflow in results.workflows if workflow.name in names]
    return msgspec.structs.replace(results, workflows=kept)


def _several(workflow: str, given: Any) -> list[Config | CustomReporter]:
    if given is None:
        return []
    several = list(given) if isinstance(given, list | tuple) else [given]
    for one in several:
        if not isinstance(one, Config | CustomReporter):
            raise BadInput(
                f"{workflow}: reporting is {one!r} but must be a config or a CustomReporter",
                'reporting = [PostgresConfig(host="db.example")], '
                "or a subclass of hyperscale.plugin.CustomReporter; --out writes files",
            )
    return several
