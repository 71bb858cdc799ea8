"""Closed model whose number of VUs is what the author's `shape(elapsed)` says.

Every core asks the same function at the same moments of load time, so that their shares add up
whenever each of them gets there.
"""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable

from hyperscale.engine.pace import Pace
from hyperscale.errors import RunFailed
from hyperscale.workload.load import ShapedVUs, longest_s

ASK_S = 0.1  # a step in the shape is followed this late at most

Shape = Callable[[float], int | None]


class ShapedPace(Pace[ShapedVUs]):
    shape: Shape
    _by_hand = 0  # VUs added while it runs, on top of the shape

    def scale(self, delta: int) -> None:
        self._by_hand += delta

    async def drive(self) -> None:
        limit_s = self.load.duration_s or longest_s(self.load)
        moment = int(self.clock.elapsed() / ASK_S)
        while moment * ASK_S < limit_s:
            wanted = self._wanted(moment * ASK_S)
            if wanted is None:
                return
            self.resize(max(0, self.load.vus_of(wanted) + self._by_hand))
            if not await self.clock.reach(min((moment + 1) * ASK_S, limit_s)):
                return
            moment = max(moment + 1, int(self.clock.elapsed() / ASK_S))

    def _wanted(self, elapsed_s: float) -> int | None:
        try:
            wanted = self.shape(elapsed_s)
        except Exception as error:
            self.stop()
            raise RunFailed(
                f"shape({elapsed_s:g}) raised {type(error).__name__}: {error} ({_place(error)})",
                "it gets the seconds of load so far and returns the users wanted, or None to end",
            ) from error
        try:
            whole = None if wanted is None else operator.index(wanted)
        except TypeError:
            whole = -1
        if whole is not None and whole < 0:
            self.stop()
            raise RunFailed(
                f"shape({elapsed_s:g}) returned {wanted!r}",
                "return a whole number of users from 0 up, or None to end the load",
            )
        return whole


def _place(error: Exception) -> str:
    """The line of the author's that raised it: the last one in the file of `shape` itself."""
    frames = traceback.extract_tb(error.__traceback__)[1:] or traceback.extract_tb(
        error.__traceback__
    )
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    return f"{own[-1].filename}:{own[-1].lineno}"
