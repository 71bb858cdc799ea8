"""What a program may give as a workflow: a class, an instance, or either with dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from hyperscale.errors import BadInput
from hyperscale.workload.hooks import DEPENDS
from hyperscale.workload.workflow import Workflow, with_settings, with_settings_of


@dataclass(frozen=True)
class DependentWorkflow:
    """A workflow and what it waits for, where `@depends` cannot be written on the class."""

    workflow: type[Workflow] | Workflow
    dependencies: Sequence[str]


AnyWorkflow = type[Workflow] | Workflow | DependentWorkflow


def class_of(workflow: AnyWorkflow) -> type[Workflow]:
    """BadInput for what is no workflow."""
    given = workflow.workflow if isinstance(workflow, DependentWorkflow) else workflow
    cls = given if isinstance(given, type) else type(given)
    if not issubclass(cls, Workflow) or cls is Workflow:
        raise BadInput(
            f"{given!r} is not a Workflow",
            "pass a class that derives from Workflow, or an instance of one",
        )
    return cls


def tagged(workflow: AnyWorkflow, tags: Mapping[str, str]) -> AnyWorkflow:
    """The same with more tags of its own."""
    if not tags:
        return workflow
    if isinstance(workflow, DependentWorkflow):
        inner = tagged(workflow.workflow, tags)
        assert not isinstance(inner, DependentWorkflow)
        return replace(workflow, workflow=inner)
    if isinstance(workflow, type):
        return with_settings(class_of(workflow), {"tags": {**workflow.tags, **tags}})
    class_of(workflow)
    labelled = copy(workflow)
    labelled.tags = {**workflow.tags, **tags}
    return labelled


def name_of(workflow: AnyWorkflow) -> str:
    return class_of(workflow).__name__


def parts_of(workflow: AnyWorkflow) -> tuple[type[Workflow], Workflow | None, tuple[str, ...]]:
    """Its class, the instance if it is one, and what it depends on."""
    cls = class_of(workflow)
    depends: tuple[str, ...] = vars(cls).get(DEPENDS, ())
    if isinstance(workflow, DependentWorkflow):
        depends = tuple(dict.fromkeys([*depends, *workflow.dependencies]))
        workflow = workflow.workflow
    if isinstance(workflow, Workflow):
        return with_settings_of(workflow), workflow, depends
    return cls, None, depends
