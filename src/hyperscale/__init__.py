"""Load tests as Python classes.

    from hyperscale import Workflow, step
    from hyperscale.testing import URL, HTTPResponse

Names are imported on first use, so that the package opens in milliseconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hyperscale._version import __version__

if TYPE_CHECKING:
    from hyperscale.errors import BadInput, HyperscaleError, RunFailed
    from hyperscale.local import LocalRunner, run
    from hyperscale.metrics.results import Results
    from hyperscale.workload.custom_metrics import COUNT, DISTRIBUTION, RATE, SAMPLE, Metric
    from hyperscale.workload.data import feed
    from hyperscale.workload.given import DependentWorkflow
    from hyperscale.workload.hooks import (
        Provide,
        Use,
        action,
        check,
        depends,
        metric,
        state,
        step,
    )
    from hyperscale.workload.http_options import ClientCert, HTTPOptions
    from hyperscale.workload.results import CustomResult
    from hyperscale.workload.secrets import secret
    from hyperscale.workload.workflow import Workflow

_HOMES = {
    "hyperscale.errors": ("BadInput", "HyperscaleError", "RunFailed"),
    "hyperscale.local": ("LocalRunner", "run"),
    "hyperscale.metrics.results": ("Results",),
    "hyperscale.workload.custom_metrics": ("COUNT", "DISTRIBUTION", "RATE", "SAMPLE", "Metric"),
    "hyperscale.workload.data": ("feed",),
    "hyperscale.workload.given": ("DependentWorkflow",),
    "hyperscale.workload.hooks": (
        *("Provide", "Use", "action", "check", "depends", "metric", "state", "step"),
    ),
    "hyperscale.workload.http_options": ("ClientCert", "HTTPOptions"),
    "hyperscale.workload.results": ("CustomResult",),
    "hyperscale.workload.secrets": ("secret",),
    "hyperscale.workload.workflow": ("Workflow",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "COUNT",
    "DISTRIBUTION",
    "RATE",
    "SAMPLE",
    "BadInput",
    "ClientCert",
    "CustomResult",
    "DependentWorkflow",
    "HTTPOptions",
    "HyperscaleError",
    "LocalRunner",
    "Metric",
    "Provide",
    "Results",
    "RunFailed",
    "Use",
    "Workflow",
    "__version__",
    "action",
    "check",
    "depends",
    "feed",
    "metric",
    "run",
    "secret",
    "state",
    "step",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'hyperscale' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
