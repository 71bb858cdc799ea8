"""Commands that take the same options as another one, without writing them down again.

typer reads a command's options from its signature. Such a command says `**given` and gets
the options of another command there; one it writes down itself takes the place of the other's
of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container
from typing import Any, TypeVar

Command = TypeVar("Command", bound=Callable[..., Any])


def options_of(
    other: Callable[..., Any],
    *,
    only: Container[str] | None = None,
    without: Container[str] = (),
) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        mine = [
            parameter
            for parameter in own.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        names = {parameter.name for parameter in mine}
        theirs = [
            parameter
            for parameter in inspect.signature(other, eval_str=True).parameters.values()
            if parameter.name not in names
            and parameter.name not in without
            and (only is None or parameter.name in only)
        ]
        joined = sorted(
            [*mine, *theirs], key=lambda one: one.default is not inspect.Parameter.empty
        )
        command.__signature__ = own.replace(  # type: ignore[attr-defined]  # what inspect looks for
            parameters=joined
        )
        return command

    return add
