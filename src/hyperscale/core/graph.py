"""`Workflow` under the path that existing tests import."""

from hyperscale.graph import DependentWorkflow, Workflow

__all__ = ["DependentWorkflow", "Workflow"]
