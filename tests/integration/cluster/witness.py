"""The target as a witness: its own count of requests, looked at all the time a test runs.

What a run reports is compared with it, and a pause of the load shows as a count that stands still.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import urlsplit

from hyperscale.target.process import TargetProcess
from tests.integration.cluster.fleet import until

LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Look:
    at_s: float
    requests: int


class Witness:
    def __init__(self) -> None:
        self._target = TargetProcess()
        self.url = self._target.url
        self.looks: list[Look] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __enter__(self) -> Witness:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._target.stop()

    @property
    def requests(self) -> int:
        return self._ask("/stats")

    def paths(self) -> dict[str, int]:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        connection.request("GET", "/stats")
        found: dict[str, int] = json.loads(connection.getresponse().read())["paths"]
        connection.close()
        return found

    def reset(self) -> None:
        self._ask("/stats/reset")
        self.looks.clear()

    def _ask(self, path: str) -> int:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        try:
            connection.request("GET", path)
            body = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return int(body.get("requests", 0))

    def _watch(self) -> None:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        while not self._over.wait(LOOK_EVERY_S):
            connection.request("GET", "/stats")
            body = json.loads(connection.getresponse().read())
            self.looks.append(Look(time.monotonic(), int(body["requests"])))
        connection.close()

    def wait_for_requests(self, more_than: int) -> int:
        until(lambda: self.requests > more_than, f"more than {more_than} requests at the target")
        return self.requests

    def longest_stall_s(self, since_s: float, until_s: float) -> float:
        """The longest time within these in which no request arrived, as far as we could look:
        a stretch in which the witness itself did not get to look counts as its own fault."""
        looks = [look for look in self.looks if since_s <= look.at_s <= until_s]
        assert len(looks) > 1, "the witness did not look"
        longest, moved_at = 0.0, looks[0].at_s
        for before, look in pairwise(looks):
            if look.requests > before.requests:
                longest = max(longest, before.at_s - moved_at)
                moved_at = look.at_s
        return max(longest, looks[-1].at_s - moved_at)

    def last_moved_s(self) -> float:
        """When the count last grew."""
        looks = list(self.looks)
        moved = [look.at_s for before, look in pairwise(looks) if look.requests > before.requests]
        return moved[-1]
