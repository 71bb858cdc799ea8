"""A chat over WebSocket: sessions that stay open, messages both ways.

hyperscale demo --serve                  # echoes WebSocket messages at /ws
hyperscale run examples/websocket_chat.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, WebSocketResponse

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8000")


class Chat(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["ws_connecting: p(95)<500ms", "ws_req_failed: rate<1%", "ws_sessions: count>0"]

    async def on_start(self):
        self.said = 0

    @step()
    async def say(self, room: URL = TARGET.replace("http", "ws") + "/ws") -> WebSocketResponse:
        self.said += 1
        text = f"message {self.said}"
        answer = await self.client.websocket.request(room, text, matching=text, timeout="5s")
        if answer.ok and answer.message != text:
            answer.fail(f"another message came back: {answer.message!r}")
        return answer
