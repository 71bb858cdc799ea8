"""A load test as a job: a real `hyperscale run` against a server on this machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Result, Task
from hyperscale.scheduler.worker.executors.loadtest import LoadtestExecutor
from hyperscale.scheduler.worker.executors.orphans import Children

TEST_FILE = """
from hyperscale import Workflow, step
from hyperscale.scheduler.worker.executors.orphans import Children
from hyperscale.testing import URL, HTTPResponse

class Home(Workflow):
    vus = 1
    iterations = 5

    @step()
    async def home(self, url: URL = "{url}") -> HTTPResponse:
        return await self.client.http.get(url)
"""


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def run(path: Path, **payload: str) -> Result:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    file = path / "home_test.py"
    file.write_text(TEST_FILE.format(url=f"http://127.0.0.1:{port}/"))
    task = Task(
        job_id="j", token=1, payload={"file": str(file), **payload}, progress=lambda _: None
    )
    async with server, asyncio.timeout(100):
        return await LoadtestExecutor(path, Children()).run(task)


def test_the_result_is_in_the_log(tmp_path: Path) -> None:
    result = asyncio.run(run(tmp_path, args='["--workers", "1"]'))
    assert isinstance(result, Done), result
    summary = json.loads(result.log.partition("\n")[0])
    assert summary["passed"] is True
    assert summary["name"] == "Home"


def test_a_crossed_threshold_is_final(tmp_path: Path) -> None:
    flags = ["--workers", "1", "--threshold", "http_reqs<1"]
    result = asyncio.run(run(tmp_path, args=json.dumps(flags)))
    assert isinstance(result, Broken)
    assert result.failure is Failure.PERMANENT, result
