"""Why this node is not let in, said once for each address and reason.

A node that asks again for ever would otherwise say the same for ever; an operator wants to read it
once, with the words of the other side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyperscale.runtime.host import Address
from hyperscale.wire.errors import Refused

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

# Further ones are not remembered, and so not said.
REFUSALS_MAX = 1_000


class RefusalLog:
    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._said: set[tuple[Address, str]] = set()

    def say(self, address: Address, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        if (address, reason) in self._said or len(self._said) >= REFUSALS_MAX:
            return
        self._said.add((address, reason))
        if isinstance(error, Refused) and error.retry_after_s is None:
            self._log.error("refused", by=str(address), reason=error.reason, code=error.code)
        else:
            self._log.info("not reached", address=str(address), reason=reason)
