"""What nodes say of themselves while a job runs, and what the job's code sees of them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperscale.errors import ExitCode
from tests.integration.cluster.fleet import Fleet, free_port, until
from tests.integration.cluster.loads import steady, write
from tests.integration.cluster.witness import Witness

LOOKS = """
class Looks(Workflow):
    vus = 1
    iterations = 1

    async def setup(self) -> None:
        seen = sorted(name for name in os.environ if name.startswith("HYPERSCALE_"))
        assert not seen, f"the code of a test sees {seen}"
        assert "OF_THE_MACHINE" not in os.environ
        assert os.environ["OF_THE_JOB"] == "yes"

    @step()
    async def get(self, url: URL = TARGET + "/") -> HTTPResponse:
        return await self.client.http.get(url)
"""


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as made:
        yield made


class Pages:
    def __init__(self) -> None:
        self.port = free_port()

    def __str__(self) -> str:
        return f"127.0.0.1:{self.port}"

    def health(self, kind: str) -> tuple[int, dict[str, Any]]:
        status, text = self._get(f"/health/{kind}")
        return status, json.loads(text) if text else {}

    def numbers(self) -> dict[str, float]:
        lines = [line for line in self._get("/metrics")[1].splitlines() if line[0] != "#"]
        return {
            name.removeprefix("hyperscale_"): float(number)
            for name, number in (line.rsplit(" ", 1) for line in lines)
        }

    def _get(self, path: str) -> tuple[int, str]:
        """Status 0: nobody listens."""
        try:
            with urllib.request.urlopen(f"http://{self}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


def test_pages_tell_what_goes_on(tmp_path: Path, witness: Witness) -> None:
    manager, worker = Pages(), Pages()
    with Fleet(tmp_path, managers=1, workers=0) as fleet:
        fleet.add_worker("w1", "--metrics", str(worker))
        fleet["m1"].env = {"HYPERSCALE_NODE_METRICS": str(manager)}
        fleet.start()
        assert manager.health("ready") == (200, {"ok": True, "reason": "it leads"})
        assert worker.health("ready") == (200, {"ok": True, "reason": ""})
        job = fleet.detached(steady(tmp_path, witness.url, duration="60s", vus=2))
        fleet.wait_until_running(job)
        there = until(
            lambda: manager.numbers().get('parts{state="running"}') and manager.numbers(), "it runs"
        )
        assert there['jobs{state="running"}'] == 1
        assert there['submissions_total{answer="accepted"}'] == 1
        at_work = there['workers{state="healthy"}'] + there['workers{state="degraded"}']
        assert (at_work, there['cores{state="busy"}']) == (1, 1)
        assert there["records_commit_lag"] == 0 < there['records_index{held="applied"}']
        here = worker.numbers()
        assert (here['worker_parts{state="running"}'], here['worker_cores{state="free"}']) == (1, 0)
        assert here["worker_generators_bytes"] > 1_000_000
        assert fleet.hyperscale("cancel", job).code == ExitCode.PASSED
        until(lambda: manager.numbers()['jobs{state="cancelled"}'] == 1, "the job is over")
        fleet["m1"].kill()
        until(lambda: worker.health("ready")[0] == 503, "a worker without a manager")
        assert worker.health("live")[0] == 200


def test_code_of_a_test_does_not_see_the_cluster(tmp_path: Path, witness: Witness) -> None:
    with Fleet(tmp_path, tls=True, worker_env={"OF_THE_MACHINE": "yes"}) as fleet:
        fleet["w1"].env |= {
            "HYPERSCALE_NODE_CERTS": str(fleet.certs),
            "HYPERSCALE_SCHEDULER_TOKEN": "nobody should know",
        }
        fleet.start()
        file = write(tmp_path, witness.url, LOOKS)
        ended = fleet.hyperscale("run", file, *fleet.there, "-e", "OF_THE_JOB=yes")
        assert ended.code == ExitCode.PASSED, ended
