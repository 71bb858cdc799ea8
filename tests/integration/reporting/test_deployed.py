"""What deploy/ has for runs: a dashboard whose queries have answers, an action that does a run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.fixtures import metric_servers
from tests.integration.cli.program import environment
from tests.integration.reporting.test_contract import course, submitted
from tests.integration.reporting.worlds import prometheus

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_each_panel_shows_something(tmp_path: Path) -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "hyperscale-runs.json").read_text())
    with prometheus(tmp_path) as (config, _):
        asyncio.run(submitted(config, course(time.time() - 6)))
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                asked = target["expr"].replace("$run", ".*").replace("$test", "nightly")
                asked = asked.replace("$__rate_interval", "1m")
                address = config.shown().partition("://")[2].partition("/")[0]
                url = f"http://{address}/api/v1/query"
                found = metric_servers.ask(url, {"query": asked})["data"]["result"]
                assert found, (panel["title"], asked)


@pytest.mark.parametrize(("path", "passed"), [("/json", "true"), ("/status/500", "false")])
def test_the_action_runs_a_test(target: str, tmp_path: Path, path: str, passed: str) -> None:
    action = yaml.safe_load((DEPLOY / "github-action" / "action.yml").read_text())
    (step,) = [one for one in action["runs"]["steps"] if one.get("id") == "run"]
    output = tmp_path / "output"
    env = environment(
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        TEST=f"{target}{path}",
        ARGS="-i 3 -w 1",
        GITHUB_OUTPUT=str(output),
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
    )
    ended = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode == 0) == (passed == "true"), ended
    told = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert told["passed"] == passed
    assert json.loads(Path(told["results"]).read_text())["workflows"]
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".json", ".html", ".xml"}
    assert "requests" in (tmp_path / "summary.md").read_text()
