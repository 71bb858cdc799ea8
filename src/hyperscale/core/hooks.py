"""The hook names of `hyperscale.graph`, under the path that existing tests import."""

from hyperscale.workload.hook_types import Hook
from hyperscale.workload.hooks import (
    HookType,
    Provide,
    Use,
    action,
    check,
    depends,
    metric,
    state,
    step,
)

__all__ = [
    "Hook",
    "HookType",
    "Provide",
    "Use",
    "action",
    "check",
    "depends",
    "metric",
    "state",
    "step",
]
