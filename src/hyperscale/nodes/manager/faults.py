"""Errors in our own code that a manager lives on with: logged, counted, shown, never the end.

All managers hold the same records. One that ended because of one of them would be followed by all
others, and every job would be lost for the sake of one. A disk that fails is another matter: what
was promised must outlive us.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hyperscale.ledger.wal import LogClosed, LogFailed

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class Faults:
    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self.count = 0
        self.last = ""

    def add(self, about: str, error: Exception) -> None:
        self.count += 1
        self.last = f"{about}: {error!r}"
        self._log.error("fault", about=about, error=repr(error), exc_info=error)

    @contextmanager
    def contained(self, about: str) -> Iterator[None]:
        try:
            yield
        except (OSError, LogFailed, LogClosed):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            self.add(about, error)
