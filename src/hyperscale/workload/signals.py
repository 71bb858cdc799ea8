"""How the author's code ends more than the step it is in.

They are raised by methods of `Workflow` and pass through `except Exception` in the author's code.
"""

from __future__ import annotations

from collections.abc import Iterator


class Signal(BaseException):
    """What the author asked for; caught by the engine."""


class StepSkipped(Signal):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class IterationStopped(Signal):
    pass


class UserStopped(Signal):
    pass


class TestStopped(Signal):
    __test__ = False  # not a test class of pytest

    def __init__(self, reason: str, failed: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.failed = failed


def signal_in(error: BaseException) -> Signal | None:
    """The farthest-reaching signal in an exception, which may be the group of several tasks."""
    found = list(_signals(error))
    return next((s for kind in _BY_REACH for s in found if isinstance(s, kind)), None)


def beside_signals(error: BaseException) -> BaseException | None:
    """What else is in the group that a signal came with."""
    return error.split(Signal)[1] if isinstance(error, BaseExceptionGroup) else None


_BY_REACH = (TestStopped, UserStopped, IterationStopped, StepSkipped)


def _signals(error: BaseException) -> Iterator[Signal]:
    if isinstance(error, Signal):
        yield error
    elif isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _signals(part)
