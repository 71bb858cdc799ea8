"""A test on its way to a cluster: planned here, carried out there.

The client makes the same plan as a local run would, so that every mistake in a test file is found
before anything is sent. What travels is the facts of the plan, which managers decide by, and the
code as bytes that only a generator process opens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Literal, get_args

import msgspec

from hyperscale.cluster.jobs.records import LostLoad
from hyperscale.engine.bundle import bundle, largest
from hyperscale.engine.run import RunOptions
from hyperscale.engine.source import (
    BundleSource,
    ClassSource,
    FileSource,
    PickledSource,
    encode_overrides,
    encode_source,
)
from hyperscale.errors import BadInput
from hyperscale.nodes.protocol.jobs import (
    SUBMISSION_BYTES_MAX,
    Body,
    Outline,
    Policy,
    SubmitJob,
)
from hyperscale.nodes.protocol.keys import check_key
from hyperscale.nodes.protocol.where import check_where
from hyperscale.workload.facts import test_facts
from hyperscale.workload.load import ShapedVUs
from hyperscale.workload.plan import Overrides, TestPlan, plan_test

_encode = msgspec.msgpack.Encoder().encode
# The largest message but for ids, keys and the envelope.
BODY_BYTES_MAX = SUBMISSION_BYTES_MAX - 64 * 1024


@dataclass(frozen=True, slots=True)
class Where:
    """In which datacenters a job is to run, for gates."""

    datacenters: Mapping[str, int] = field(default_factory=dict)
    count: int = 0
    policy: Policy = "strict"

    @classmethod
    def of(
        cls, datacenters: Mapping[str, int], count: int = 0, policy: Policy | Literal[""] = ""
    ) -> Where:
        """Who names datacenters means these and no others. Raises BadInput."""
        where = cls(datacenters, count, policy or ("strict" if datacenters or not count else "any"))
        try:
            check_where(where.datacenters, where.count, where.policy)
        except ValueError as error:
            raise BadInput(
                f"where it runs makes no sense: {error}",
                "--dc eu --dc us: there; --dc-count 2: wherever it is best; with --dc-policy "
                "prefer others may take the place of those that are named",
            ) from None
        return where


@dataclass(frozen=True, slots=True)
class Submission:
    plan: TestPlan
    body: Body

    @property
    def outline(self) -> Outline:
        return self.body.outline()

    def message(
        self,
        job_id: str,
        *,
        key: str = "",
        requested_by: str = "",
        correlation_id: str = "",
        where: Where | None = None,
    ) -> SubmitJob:
        """The id is the client's, so a repeated message makes no second job. `key` does the same
        for a program that cannot remember the id."""
        if key:
            check_key(key)
        where = where or Where()
        return SubmitJob(
            job_id=job_id,
            body=_encode(self.body),
            idempotency_key=key,
            requested_by=requested_by,
            correlation_id=correlation_id or job_id,
            datacenters=dict(where.datacenters),
            datacenter_count=where.count,
            policy=where.policy,
        )


def prepare(
    source: FileSource | ClassSource,
    overrides: Overrides | None = None,
    options: RunOptions | None = None,
) -> Submission:
    """Raises BadInput for a test that cannot be planned or cannot travel."""
    overrides, options = overrides or Overrides(), options or RunOptions()
    plan = plan_test(source.load(), overrides)
    facts = tuple(test_facts(plan))
    if options.lost_load not in get_args(LostLoad):
        raise BadInput(
            f"lost_load is {options.lost_load!r}", f"it is one of {', '.join(get_args(LostLoad))}"
        )
    for workflow in facts:
        if isinstance(workflow.load, ShapedVUs) and not workflow.load.duration_s:
            raise BadInput(
                f"{workflow.name} has a shape but no duration, so a part of it that has to move "
                "to another worker could not tell how far it was",
                "set duration, or use -d; the shape may end before",
            )
    bundled = bundle(source)
    body = Body(
        workflows=facts,
        source=encode_source(bundled),
        identity=_identity(source, bundled),
        overrides=encode_overrides(overrides),
        name=options.name or ", ".join(workflow.name for workflow in facts),
        timeout_s=options.timeout_s,
        seed=options.seed,
        env=options.env,
        secrets=tuple(options.secrets),
        tags=overrides.tags,
        command=options.command,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=plan.warnings,
        lost_load=options.lost_load,
    )
    size_bytes = len(_encode(body))
    if size_bytes > BODY_BYTES_MAX:
        raise BadInput(
            f"the test and its files take {size_bytes / 1e6:.1f} MB when packed, and at most "
            f"{BODY_BYTES_MAX / 1e6:.1f} MB can be sent; the largest are {largest(bundled)}",
            "make the data smaller, or let a function fetch or generate it",
        )
    return Submission(plan, body)


def _identity(source: FileSource | ClassSource, bundled: BundleSource | PickledSource) -> str:
    """Files are the same bytes whenever they are read; a pickled class is not."""
    if isinstance(source, FileSource):
        return ""
    brought = _encode(bundled.attached)
    return hashlib.blake2b(source.identity() + brought, digest_size=16).hexdigest()


def new_job_id(dice: Random) -> str:
    """Short enough to be typed, long enough never to meet another: 60 bits."""
    return f"{dice.getrandbits(60):015x}"
