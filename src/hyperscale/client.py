"""A cluster for Python programs: `HyperscaleClient`, what it tells, and how it fails."""

from __future__ import annotations

from hyperscale.nodes.client.client import HyperscaleClient, JobSubmission
from hyperscale.nodes.client.errors import (
    JobCancelled,
    JobFailed,
    JobNotAccepted,
    NoManagersAvailable,
    ReconnectFailed,
    UnknownJob,
)
from hyperscale.nodes.client.pushes import (
    JobOutcome,
    JobStatusPush,
    StepStats,
    WindowedStatsPush,
    WorkerWindowStats,
    WorkflowResultPush,
)
from hyperscale.nodes.protocol.keys import IdempotencyKeyGenerator, InvalidKey

NoGatesAvailable = NoManagersAvailable

__all__ = [
    "HyperscaleClient",
    "IdempotencyKeyGenerator",
    "InvalidKey",
    "JobCancelled",
    "JobFailed",
    "JobNotAccepted",
    "JobOutcome",
    "JobStatusPush",
    "JobSubmission",
    "NoGatesAvailable",
    "NoManagersAvailable",
    "ReconnectFailed",
    "StepStats",
    "UnknownJob",
    "WindowedStatsPush",
    "WorkerWindowStats",
    "WorkflowResultPush",
]
