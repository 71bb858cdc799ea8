"""Load on anything: bring your own client and return a CustomResult.

Here the client speaks raw HTTP over an asyncio TCP connection, one per virtual user; a database
driver, a message queue or a home-made protocol goes the same way.

hyperscale run examples/custom_client.py
"""

import asyncio
import os
from urllib.parse import urlsplit

from hyperscale import Workflow, step
from hyperscale.testing import CustomResult

TARGET = os.environ.get("TARGET", "http://127.0.0.1:8080")
ADDRESS = urlsplit(TARGET)


class Answer(CustomResult):
    """What the engine measures: how it went, how many bytes, and how long the step took."""


class RawTcp(Workflow):
    vus = 10
    duration = "10s"

    @step()
    async def request(self) -> Answer:
        reader, writer = await asyncio.open_connection(ADDRESS.hostname, ADDRESS.port or 80)
        question = f"GET / HTTP/1.0\r\nHost: {ADDRESS.netloc}\r\nConnection: close\r\n\r\n".encode()
        try:
            writer.write(question)
            answer = await reader.read()
        finally:
            writer.close()
        status_line = answer.partition(b"\r\n")[0].decode("latin-1")
        return Answer(
            ok=" 200 " in status_line,
            error=f"unexpected answer: {status_line!r}",
            bytes_in=len(answer),
            bytes_out=len(question),
        )
