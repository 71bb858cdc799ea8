"""How much a submission may ask a manager to build, counted before anything is built.

A step is a few bytes to send and a histogram to hold, so the size of a message says little of what
it costs. Only the lengths are read here; texts and numbers stay as they came.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from hyperscale.nodes.protocol.jobs import Body, SubmitJob

WORKFLOWS_MAX = 1_000
# Of a job, with its checks and metrics. The largest tests have some hundred; ten thousand take a
# manager half a second to set up.
STEPS_MAX = 10_000
# Of a job; each is judged once a second while it runs.
THRESHOLDS_MAX = 1_000
# Of a workflow: the names of others, of values, of tags.
NAMES_MAX = 1_000
# Of a workflow's load: some thousand stages.
LOAD_BYTES_MAX = 256 * 1024
ID_CHARS_MAX = 128
TEXT_CHARS_MAX = 1_000  # names and the like; they are in every listing

LIMITS = (
    f"a job has 1 to {WORKFLOWS_MAX:,} workflows, at most {STEPS_MAX:,} steps and "
    f"{THRESHOLDS_MAX:,} thresholds"
)

_Steps = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=STEPS_MAX)]
_Thresholds = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=THRESHOLDS_MAX)]
_Names = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=NAMES_MAX)]
_ByName = Annotated[dict[str, msgspec.Raw], msgspec.Meta(max_length=NAMES_MAX)]


class _Workflow(msgspec.Struct):
    load: msgspec.Raw
    steps: _Steps = []
    thresholds: _Thresholds = []
    depends: _Names = []
    tags: _ByName = {}
    provides: _ByName = {}


class _Submission(msgspec.Struct):
    workflows: Annotated[list[_Workflow], msgspec.Meta(min_length=1, max_length=WORKFLOWS_MAX)]
    env: _ByName = {}
    tags: _ByName = {}
    warnings: _Names = []
    secrets: _Names = []


_decoder = msgspec.msgpack.Decoder(_Submission)


def check_sizes(body: bytes) -> None:
    """Raises MsgspecError or ValueError for a submission that is no job, or too much of one."""
    try:
        workflows = _decoder.decode(body).workflows
    except msgspec.ValidationError as error:
        raise ValueError(f"{LIMITS}: {error}") from None
    for what, count, most in (
        ("steps, checks and metrics", sum(len(one.steps) for one in workflows), STEPS_MAX),
        ("thresholds", sum(len(one.thresholds) for one in workflows), THRESHOLDS_MAX),
    ):
        if count > most:
            raise ValueError(f"a job has at most {most:,} {what}, not {count:,}")
    for one in workflows:
        if len(one.load) > LOAD_BYTES_MAX:
            raise ValueError(f"the load of a workflow takes at most {LOAD_BYTES_MAX:,} bytes")


def check_texts(ask: SubmitJob, body: Body) -> None:
    """Raises ValueError for what no listing could hold."""
    if not 0 < len(ask.job_id) <= ID_CHARS_MAX or not ask.job_id.isprintable():
        raise ValueError(f"a job's id has 1 to {ID_CHARS_MAX} printable characters")
    for what, text in (
        ("name", body.name),
        ("correlation id", ask.correlation_id),
        ("requester", ask.requested_by),
    ):
        if len(text) > TEXT_CHARS_MAX:
            raise ValueError(f"a job's {what} has at most {TEXT_CHARS_MAX} characters")
