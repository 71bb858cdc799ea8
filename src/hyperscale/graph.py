"""Workflows and the decorators that make their methods steps."""

from __future__ import annotations

from hyperscale.workload.given import DependentWorkflow
from hyperscale.workload.hooks import Provide, Use, action, check, depends, metric, state, step
from hyperscale.workload.workflow import Workflow

__all__ = [
    "DependentWorkflow",
    "Provide",
    "Use",
    "Workflow",
    "action",
    "check",
    "depends",
    "metric",
    "state",
    "step",
]
