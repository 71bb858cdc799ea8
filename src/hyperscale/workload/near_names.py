"""Attributes that nearly are a setting, and methods that nearly have a meaning of their own.

`thinktime = "1s"` would be ignored without a word. A name is refused when it is close to a known
one that the class does not write, and no method of the class reads it. An author's own constants
are free, and a leading underscore says that a name is meant.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

from hyperscale.errors import BadInput
from hyperscale.workload.hooks import declared
from hyperscale.workload.workflow import METHODS, SETTINGS, Workflow

# "durration" is 0.94 from "duration", "height" 0.83 from "weight". Below six letters one letter
# is too much of a name: "hosts" and "rates" are not slips of the pen.
CLOSE = 0.85
SHORT = 6
MEANT = (*METHODS, "flow", "on_start", "on_stop")


def refuse(workflow: type[Workflow]) -> None:
    """BadInput for the first slip; the words follow the workflow's name."""
    own = [base for base in workflow.__mro__ if base not in Workflow.__mro__]
    written = {name: value for base in reversed(own) for name, value in vars(base).items()}
    read: set[str] | None = None
    for name, value in written.items():
        if name.startswith("_") or declared(value) or name in (*SETTINGS, *MEANT):
            continue
        is_method = inspect.isfunction(value)
        if callable(value) and not is_method:
            continue
        meant = _near(name, MEANT if is_method else SETTINGS)
        if meant is None or meant in written:
            continue
        read = _names_read(own) if read is None else read
        if name not in read:
            used = "calls it" if is_method else "reads it"
            what = "a method of its own" if is_method else "a setting"
            raise BadInput(
                f"{name} is not {what} of a workflow, and nothing in the class {used}",
                f"did you mean {meant!r}? A name of your own may begin with an underscore",
            )


def _near(name: str, known: Iterable[str]) -> str | None:
    letters = {_letters(each): each for each in known}
    if _letters(name) in letters:
        return letters[_letters(name)]
    long = [each for each in letters if len(each) >= SHORT]
    close = difflib.get_close_matches(_letters(name), long, n=1, cutoff=CLOSE)
    return letters[close[0]] if close else None


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def _names_read(classes: Iterable[type]) -> set[str]:
    """Every name and text in the code of the methods: getattr(self, "name") reads it too."""
    return {
        name
        for base in classes
        for value in vars(base).values()
        for function in _functions(value)
        for code in _codes(function.__code__)
        for name in (*code.co_names, *(c for c in code.co_consts if isinstance(c, str)))
    }


def _functions(value: object) -> Iterator[FunctionType]:
    methods: tuple[object, ...] = (getattr(value, "__func__", value),)
    if isinstance(value, property):
        methods = (value.fget, value.fset)
    for method in methods:
        function = inspect.unwrap(method) if callable(method) else None
        if isinstance(function, FunctionType):
            yield function


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
