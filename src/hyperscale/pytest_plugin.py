"""Load tests among other tests: `pytest --hyperscale` runs each workflow of a test file.

A workflow with steps is a test. It fails as `hyperscale run` would: when a threshold is crossed,
part of the load was lost, or nothing succeeded. Its summary is in the report of the test.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import ExceptionInfo, TerminalRepr

    from hyperscale.metrics.results import Results


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hyperscale", "load tests")
    group.addoption(
        "--hyperscale", action="store_true", help="run the workflows of test files as load tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hyperscale: a load test, collected by --hyperscale")


class NotPassed(Exception):
    """Holds the results of a run that did not pass."""

    def __init__(self, results: Results) -> None:
        super().__init__(results.failure or results.cut_reason or "the load test did not pass")
        self.results = results


class LoadTest(pytest.Item):
    """One workflow, with those it depends on."""

    def __init__(self, *, workflow: str, **more: Any) -> None:
        super().__init__(**more)
        self._workflow = workflow
        self.add_marker("hyperscale")

    def runtest(self) -> None:
        from hyperscale.local import run_file

        results = run_file(self.path, self._workflow)
        self.add_report_section("call", "load test", results.summary())
        self.user_properties.append(("requests", results.requests))
        if not results.passed:
            raise NotPassed(results)

    def repr_failure(
        self, excinfo: ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        from hyperscale.errors import HyperscaleError

        error = excinfo.value
        if isinstance(error, NotPassed):
            return str(error)
        if isinstance(error, HyperscaleError):
            return f"{error.message}\n{error.hint}".rstrip()
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, f"load test {self._workflow}"


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Item | None:
    """Of a file, what is written in it: an imported workflow is the test of another."""
    if not collector.config.getoption("--hyperscale") or not inspect.isclass(obj):
        return None
    from hyperscale.workload.workflow import Workflow

    if not issubclass(obj, Workflow) or obj.__module__ != collector.obj.__name__:
        return None
    made: pytest.Item = LoadTest.from_parent(collector, name=name, workflow=name)
    return made
