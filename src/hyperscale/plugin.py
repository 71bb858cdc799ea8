"""What to build on: results, reporters and metrics of your own, and clients of your own protocols.

A client is three classes, as docs/clients.md says; `protocols = {"oracle": OraclePool}` in a
workflow makes it `self.client.oracle`.
"""

from __future__ import annotations

from hyperscale.clients.contract import Call, ProtocolClient, ProtocolPool
from hyperscale.clients.net.failures import Failure
from hyperscale.clients.per_address import AddressClient, AddressPool
from hyperscale.reporting.custom import CustomReporter, StepMetricSet, WorkflowMetricSet
from hyperscale.workload.custom_metrics import Metric as CustomMetric
from hyperscale.workload.replies import Reply
from hyperscale.workload.results import CustomResult

__all__ = [
    "AddressClient",
    "AddressPool",
    "Call",
    "CustomMetric",
    "CustomReporter",
    "CustomResult",
    "Failure",
    "ProtocolClient",
    "ProtocolPool",
    "Reply",
    "StepMetricSet",
    "WorkflowMetricSet",
]
