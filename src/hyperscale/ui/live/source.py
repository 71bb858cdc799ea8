"""What a view needs of the run it shows: a snapshot whenever it asks, and the levers of the keys.

A local run, a distributed one and a test's fake all fit behind this.
"""

from __future__ import annotations

from typing import Protocol

from hyperscale.metrics.results import Results


class Watched(Protocol):
    def results(self) -> Results:
        """The run so far; cheap enough to be asked several times a second."""
        ...


class Source(Watched, Protocol):
    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def scale(self, delta_vus: int, workflow: str | None = None, /) -> None:
        """Give the workflow, or each one under way, this many VUs more, or fewer."""
        ...

    def change_rate(self, factor: float, workflow: str | None = None, /) -> None:
        """From now on so many times the arrivals, of the workflow or of each open one."""
        ...

    def stop(self) -> None:
        """End gracefully: what is under way is finished and counted."""
        ...

    def kill(self) -> None:
        """End now."""
        ...


class View(Protocol):
    async def run(self, source: Source) -> None:
        """Show the run until it is finished or this task is cancelled."""
        ...

    def over(self) -> None:
        """The run is finished: show that now, not when the next look at it is due."""
        ...
