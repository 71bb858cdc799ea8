"""From what a client submits to the record of a job."""

from __future__ import annotations

from collections.abc import Generator

import msgspec

from hyperscale.cluster.jobs.records import Needs, Submitted
from hyperscale.nodes.manager import dispatch
from hyperscale.nodes.member.access import NOBODY, Asker
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.nodes.protocol.sealing import UNSEALED, Sealing
from hyperscale.nodes.protocol.submission_limits import check_sizes

ID_CHARS_MAX = 128
TEXT_CHARS_MAX = 1_000  # names and the like; they are in every listing


def record_of(
    ask: SubmitJob, sealing: Sealing = UNSEALED, who: Asker = NOBODY
) -> Generator[None, None, Submitted]:
    """The record of a submission, in steps. Raises MsgspecError, ValueError or HyperscaleError for
    one that makes no sense, or too much of it."""
    if not 0 < len(ask.job_id) <= ID_CHARS_MAX or not ask.job_id.isprintable():
        raise ValueError(f"a job's id has 1 to {ID_CHARS_MAX} characters")
    check_sizes(ask.body)
    yield
    body = msgspec.msgpack.decode(ask.body, type=Body)
    for what, text in (
        ("name", body.name),
        ("correlation id", ask.correlation_id),
        ("requester", ask.requested_by),
    ):
        if len(text) > TEXT_CHARS_MAX:
            raise ValueError(f"a job's {what} has at most {TEXT_CHARS_MAX} characters")
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
