"""From what a client submits to the record of a job."""

from __future__ import annotations

from collections.abc import Generator

import msgspec

from hyperscale.cluster.jobs.records import Needs, Submitted
from hyperscale.nodes.manager import dispatch
from hyperscale.nodes.member.access import NOBODY, Asker
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing
from hyperscale.nodes.protocol.submission_limits import check_sizes, check_texts


def record_of(
    ask: SubmitJob, sealing: Sealing = UNSEALED, who: Asker = NOBODY
) -> Generator[None, None, Submitted]:
    """The record of a submission, in steps. Raises MsgspecError, ValueError or HyperscaleError for
    one that makes no sense, or too much of it."""
    check_sizes(ask.body)
    yield
    body = msgspec.msgpack.decode(ask.body, type=Body)
    check_texts(ask, body)
    yield from dispatch.check_judges(body)
    needs: tuple[Needs, ...] = tuple(dispatch.needs_of(facts) for facts in body.workflows)
    return Submitted(
        job_id=ask.job_id,
        age_s=0.0,
        name=body.name or ", ".join(facts.name for facts in body.workflows)[:200],
        workflows=needs,
        timeout_s=dispatch.timeout_s(body, needs),
        body=msgspec.msgpack.encode(sealing.seal_body(body)),
        idempotency_key=ask.idempotency_key,
        digest=body.digest(),
        requested_by=ask.requested_by,
        correlation_id=ask.correlation_id or ask.job_id,
        lost_load=body.lost_load,
        owner=who.owner,
        groups=who.groups if who.owner else (),
        for_gate=ask.for_gate,
        held=ask.held,
    )
