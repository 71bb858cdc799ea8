"""gRPC: a call, a stream that is read to its end, and a conversation.

hyperscale demo --serve                  # has an echo of gRPC, and describes it itself
hyperscale run examples/grpc.py
"""

import os

from hyperscale import Workflow, step
from hyperscale.testing import URL, Data, GRPCResponse

ECHO = os.environ.get("TARGET", "http://127.0.0.1:8080").replace("http", "grpc", 1)


class Echo(Workflow):
    vus = 10
    duration = "10s"
    thresholds = ["grpc_req_duration: p(95) < 2s", "grpc_req_failed: rate < 1%"]

    @step()
    async def say(self, address: URL = ECHO, note: Data = {"text": "hello"}) -> GRPCResponse:
        answer = await self.client.grpc.unary(
            address, "hyperscale.Echo/Say", note, metadata={"x-user": "ada"}, timeout="2s"
        )
        if answer.ok and answer.message.text != "hello":
            answer.fail(f"another text came back: {answer.message.text!r}")
        return answer

    @step()
    async def repeat(self, address: URL = ECHO) -> GRPCResponse:
        note = {"text": "again", "count": 20}
        answer = await self.client.grpc.server_stream(address, "hyperscale.Echo/Repeat", note)
        if answer.ok and len(answer.messages) != 20:
            answer.fail(f"{len(answer.messages)} messages came")
        return answer

    @step()
    async def chat(self, address: URL = ECHO) -> GRPCResponse:
        async with self.client.grpc.open(address, "hyperscale.Echo/Chat") as talk:
            for word in ("how", "are", "you"):
                await talk.send({"text": word})
                await talk.receive()
        return talk.response
