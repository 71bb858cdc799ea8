"""An objective, judged: 200 requests a second, 99 % of them within 50 ms, hardly any failing.

The arrivals keep their schedule whatever the target does, so a slow target cannot make itself
look fast by being asked less. The command exits with 99 when a threshold is crossed:

hyperscale run examples/slo.py
hyperscale run examples/slo.py -e SLO_PATH=/delay/80     # too slow: exit code 99
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, HTTPResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")
PATH = os.environ.get("SLO_PATH", "/delay/5")


class Slo(Workflow):
    rate = "200/s"
    duration = "15s"
    max_vus = 200
    thresholds = {
        "http_req_duration": ["p(99)<50"],
        "http_req_failed": ["rate<0.01"],
        "dropped_iterations": ["count<1"],
    }

    @step()
    async def answer(self, url: URL = f"{TARGET}{PATH}") -> HTTPResponse:
        return await self.client.http.get(url)
