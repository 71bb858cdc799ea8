"""What every reporter is to its callers: connect, submit, close.

A backend takes points each second while the run goes on, or the results at its end, or both. It
is called from one task at a time, in a thread of its own (`delivery`), so it may block there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from hyperscale.metrics.results import Results
from hyperscale.reporting.points import Points


class Refused(Exception):
    """The backend does not take this, and would not take it again."""


class Backend(ABC):
    needs: ClassVar[str] = ""  # the library it imports
    extra: ClassVar[str] = ""  # what of ours brings it
    live: ClassVar[bool] = False  # takes points while the run goes on
    at_end: ClassVar[bool] = False  # takes the results
    keeps_time: ClassVar[bool] = True  # a point may be of the past
    every_s: ClassVar[float] = 0.0  # at least so much between two submissions

    @abstractmethod
    async def connect(self) -> None:
        """Raises whatever the library raises when the backend cannot be used."""

    async def submit(self, points: Sequence[Points]) -> None:
        """All of them or none. Raises Refused for what is not worth a second attempt."""
        raise NotImplementedError

    async def submit_results(self, results: Results) -> None:
        """All of them or none; the same results twice are stored once."""
        raise NotImplementedError

    async def close(self) -> None:  # noqa: B027 - many have nothing to close
        """May come twice, and without a connection."""
