"""What flags and config file change in the test file, in the words of the plan.

Flags and environment are stronger than the test file. The config file is weaker: it fills in what
no workflow of the run says. A workflow that chooses its own load model (`rate`, `stages`,
`iterations`) has said everything about its load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hyperscale.config.run import Settings
from hyperscale.engine.source import ClassSource, FileSource
from hyperscale.errors import BadInput
from hyperscale.workload.given import class_of
from hyperscale.workload.plan import Overrides
from hyperscale.workload.workflow import Workflow, host_of, http_of, load_settings_of, tags_of

_USERS = {"vus", "vus_each"}
_LOAD = (*_USERS, "duration", "iterations", "stage", "rate", "max_vus", "rps")
_MODELS = {"rate", "stages", "iterations", "iterations_per_vu", "shape"}
_ASKED_OF_THE_TEST_FILE = (*_LOAD, "host", "insecure_skip_tls_verify", "threshold", "tag")


def overrides_of(said: Settings, filled: Settings, source: FileSource | ClassSource) -> Overrides:
    if any(getattr(filled, name) is not None for name in _ASKED_OF_THE_TEST_FILE):
        filled = _left_open(filled, said, [class_of(workflow) for workflow in source.load()])
    settings = said.over(filled)
    return Overrides(
        vus=settings.vus,
        vus_each=settings.vus_each,
        duration=settings.duration,
        iterations=settings.iterations,
        stages=[_stage(text) for text in settings.stage] if settings.stage else None,
        rate=settings.rate,
        max_vus=settings.max_vus,
        rps=settings.rps,
        thresholds=settings.threshold or [],
        no_thresholds=bool(settings.no_thresholds),
        tags=settings.tag or {},
        insecure=bool(settings.insecure_skip_tls_verify),
        base_url=settings.host,
    )


def _left_open(filled: Settings, said: Settings, workflows: Sequence[type[Workflow]]) -> Settings:
    """The settings of the config file that neither a stronger place nor a workflow decides."""
    taken = {name for workflow in workflows for name in _taken_by(workflow)}
    if any(getattr(said, name) is not None for name in ("iterations", "stage", "rate")):
        taken.update(_LOAD)
    if any(getattr(said, name) is not None for name in _USERS):
        taken |= _USERS
    tagged = {name for workflow in workflows for name in tags_of(workflow)}
    tags = {name: value for name, value in (filled.tag or {}).items() if name not in tagged}
    undecided = {name: None for name in taken if name in _ASKED_OF_THE_TEST_FILE}
    return replace(filled, **undecided, tag=tags)


def _taken_by(workflow: type[Workflow]) -> set[str]:
    """The settings that a workflow decides itself."""
    set_here = set(load_settings_of(workflow))
    taken = set(_LOAD) if set_here & _MODELS else set_here
    if "vus" in set_here:
        taken |= _USERS
    if host_of(workflow) or http_of(workflow).base_url:
        taken.add("host")
    if not http_of(workflow).verify:
        taken.add("insecure_skip_tls_verify")
    if workflow.thresholds:
        taken.add("threshold")
    return taken


def decided_by(source: FileSource | ClassSource) -> dict[str, str]:
    """What the workflows of a test decide themselves, each setting in words."""
    found: dict[str, list[str]] = {}
    for workflow in map(class_of, source.load()):
        said = load_settings_of(workflow)
        for name in _taken_by(workflow):
            value = said.get(name)
            text = f"({workflow.__name__})" if value is None else f"{value} ({workflow.__name__})"
            found.setdefault(name, []).append(text)
    return {name: ", ".join(texts) for name, texts in found.items()}


def _stage(text: str) -> tuple[str, str]:
    """`30s:100`: within 30 seconds, to 100."""
    duration, colon, target = text.partition(":")
    if not (duration and colon and target):
        raise BadInput(
            f"--stage takes TIME:N, not {text!r}",
            "-s 30s:100 -s 1m:100 -s 10s:0 ramps up to 100, holds, and ramps down",
        )
    return duration, target
