"""Server-Sent Events: users who watch a stream, and wait for what they care about.

hyperscale demo --serve                  # ticks at /events
hyperscale run examples/sse.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, SSEResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8000")


class Watch(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["sse_req_failed: rate<1%", "sse_events_received: count>0"]

    async def on_start(self):
        self.seen = 0

    @step()
    async def tick(
        self, ticker: URL = TARGET.replace("http", "sse") + "/events?count=100000&ms=20"
    ) -> SSEResponse:
        answer = await self.client.sse.next(ticker, "tick", timeout="5s")
        if answer.ok:
            number = answer.json()["number"]
            if number != self.seen + 1:
                answer.fail(f"event {number} after {self.seen}")
            self.seen = number
        return answer
