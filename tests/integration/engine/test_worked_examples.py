"""The specification's eight worked examples, run whole against the embedded target."""

import asyncio
from pathlib import Path

import pytest

from hyperscale.engine.run import LocalRun, RunOptions
from hyperscale.engine.source import FileSource
from hyperscale.errors import ExitCode
from hyperscale.workload.plan import Overrides

EXAMPLES = str(Path(__file__).parents[2] / "fixtures" / "worked_examples.py")


def test_all_of_them_run(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTS_TEST_URL", target)
    options = RunOptions(workers=2, env={"TESTS_TEST_URL": target})
    results = asyncio.run(
        LocalRun(FileSource(EXAMPLES), Overrides(vus=4, iterations=12), options).execute()
    )
    by_name = {workflow.name: workflow for workflow in results.workflows}
    assert results.exit_code == ExitCode.PASSED, [
        (w.name, w.error, [(s.name, s.errors) for s in w.steps if s.failed])
        for w in results.workflows
    ]
    assert results.failed == 0
    for name in ("SetupWorkflow", "UtilityWorkflow"):
        assert (by_name[name].cores, by_name[name].requests) == (1, 0)
        assert not by_name[name].is_test
    for name in ("LoadTestWorkflow", "APITestWorkflow", "OptimizedAPITest", "DataWorkflow"):
        assert by_name[name].iterations == 12
    data, auth = by_name["DataWorkflow"], by_name["AuthWorkflow"]
    assert data.started_s >= auth.started_s + auth.elapsed_s
