"""A node's own certificate and the list of those it refuses: read at the start and on SIGHUP.

Connections live for days, so a new certificate is for those to come, and a refused node is shown
out at once. That our own is about to expire is said in time: once a day in the log, on the health
page, and as a number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hyperscale.errors import BadInput
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.host import Clock
from hyperscale.wire.certificates import Validity
from hyperscale.wire.endpoint import Endpoint
from hyperscale.wire.withdrawn import read_withdrawn

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

DAY_S = 86_400.0
# With a third of its life left, so that one of a day is spoken of too, and two weeks before the end
# at the latest.
WARN_LEFT_S = 14 * DAY_S
WARN_SHARE = 1 / 3
WARN_EVERY_S = DAY_S


class CertificateFiles:
    def __init__(
        self, clock: Clock, settings: NodeSettings, endpoint: Endpoint, log: FilteringBoundLogger
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._endpoint = endpoint
        self._log = log
        self._warned_at = -math.inf
        self.validity: Validity | None = None

    @property
    def refused(self) -> int:
        """Entries of the list."""
        return len(self._endpoint.withdrawn)

    def read(self) -> None:
        """Raises BadInput, OSError or ValueError."""
        if self._settings.credentials is not None:
            self.validity = self._settings.credentials.validity()
        if self._settings.refused is not None:
            self._endpoint.withdraw(read_withdrawn(self._settings.refused))

    def reload(self) -> None:
        """What cannot be read stays as it was: a node must not fall to a typing mistake."""
        try:
            self._endpoint.reload_credentials()
            if self._settings.credentials is not None:
                self.validity = self._settings.credentials.validity()
                self._warned_at = -math.inf
        except (OSError, ValueError) as error:
            self._log.error("certificate not reloaded", reason=str(error))
        if self._settings.refused is not None:
            self._refuse()
        self._log.info("reloaded", refused=self.refused, days_left=self._days_left())

    def _refuse(self) -> None:
        assert self._settings.refused is not None
        try:
            withdrawn = read_withdrawn(self._settings.refused)
        except BadInput as error:
            self._log.error("refused certificates not reloaded", reason=error.message)
            return
        for connection in self._endpoint.withdraw(withdrawn):
            self._log.warning(
                "certificate withdrawn", peer=connection.peer.node_id, role=connection.peer.role
            )

    def look(self) -> None:
        """To be called now and then."""
        if self._clock.now() >= self._warned_at + WARN_EVERY_S and self._ends_soon():
            self._warned_at = self._clock.now()
            self._log.warning(
                "certificate expires", days_left=self._days_left(), renew="hyperscale certs renew"
            )

    @property
    def remark(self) -> str:
        """What whoever looks at our health should know; empty while there is time."""
        if not self._ends_soon():
            return ""
        return f"its certificate expires in {self._days_left()} days: hyperscale certs renew"

    def _ends_soon(self) -> bool:
        if self.validity is None:
            return False
        life_s = self.validity.ends_at - self.validity.begins_at
        left_s = self.validity.ends_at - self._clock.wall()
        return left_s <= min(life_s * WARN_SHARE, WARN_LEFT_S)

    def _days_left(self) -> float | None:
        if self.validity is None:
            return None
        return round((self.validity.ends_at - self._clock.wall()) / DAY_S, 1)
