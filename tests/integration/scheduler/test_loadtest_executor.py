"""A load test as a job: a real `hyperscale run` against a server on this machine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import zstandard

from hyperscale.metrics.results import decode, encode
from hyperscale.scheduler.queue.job import Failure
from hyperscale.scheduler.worker.executors.executor import Broken, Done, Result, Task
from hyperscale.scheduler.worker.executors.loadtest import LoadtestExecutor
from hyperscale.scheduler.worker.executors.loadtest_report import unpacked
from hyperscale.scheduler.worker.executors.orphans import Children

TEST_FILE = """
from hyperscale import Workflow, step
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


async def run(path: Path, before: bytes | None = None, **payload: str) -> Result:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    file = path / "home_test.py"
    file.write_text(TEST_FILE.format(url=f"http://127.0.0.1:{port}/"))

    async def last_good() -> bytes | None:
        return before

    task = Task(
        job_id="j",
        token=1,
        payload={"file": str(file), **payload},
        progress=lambda _: None,
        last_good=last_good,
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


def test_its_figures_and_results_are_kept_and_judge_the_next(tmp_path: Path) -> None:
    flags = json.dumps(["--workers", "1", "--iterations", "400"])
    first = asyncio.run(run(tmp_path, args=flags, compare="last-good"))
    assert isinstance(first, Done), first
    assert (first.figures["requests"], first.figures["passed"]) == (400, 1.0)
    results = decode(unpacked(first.results))
    assert results.requests == 400
    good = {"args": flags, "compare": "last-good", "tolerance": "99%"}
    again = asyncio.run(run(tmp_path, first.results, **good))
    assert isinstance(again, Done), again
    for workflow in results.workflows:  # as if it had been a thousand times as quick
        workflow.elapsed_s /= 1000
    quick = zstandard.compress(encode(results))
    worse = asyncio.run(run(tmp_path, quick, args=flags, compare="last-good"))
    assert isinstance(worse, Broken), worse
    assert "worse than the last good run" in worse.error
    assert (worse.failure, worse.figures["worse"]) == (Failure.PERMANENT, 1.0)


def test_what_it_is_compared_with_is_told_at_once(tmp_path: Path) -> None:
    for payload in ({"compare": "yesterday"}, {"compare": "last-good", "tolerance": "much"}):
        result = asyncio.run(run(tmp_path, **payload))
        assert isinstance(result, Broken)
        assert result.failure is Failure.PERMANENT
