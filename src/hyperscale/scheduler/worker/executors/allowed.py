"""Which callables a `python` job may name: the patterns of `--python-allow`.

A pattern is read as its owner means it. `shop.jobs:nightly` is that one name, whatever it is. In
`shop.jobs:*` the star stands for one name that does not begin with an underscore, and what is found
under it must be a function or class of that module: not what the module imports, nor anything that
is reached through it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Final

from hyperscale.errors import BadInput

_NAME: Final = r"[^\W\d]\w*"
_TARGET: Final = re.compile(rf"{_NAME}(\.{_NAME})*:{_NAME}(\.{_NAME})*")
_PART: Final = r"[\w*]+"
_PATTERN: Final = re.compile(rf"{_PART}(\.{_PART})*:{_PART}(\.{_PART})*")
_DEFINED: Final = (FunctionType, BuiltinFunctionType, MethodType, type)


class Allowed:
    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises BadInput for a pattern that could never match."""
        for pattern in patterns:
            if not _PATTERN.fullmatch(pattern):
                raise BadInput(
                    f"--python-allow {pattern!r} is not MODULE:NAME",
                    "such as shop.jobs:nightly, or shop.jobs:* for all that shop.jobs defines",
                )
        self._named = frozenset(pattern for pattern in patterns if "*" not in pattern)
        self._matching = [_expression(pattern) for pattern in patterns if "*" in pattern]

    def named(self, target: str) -> bool:
        """In full."""
        return target in self._named

    def matched(self, target: str) -> bool:
        """By a star: then it must also be `defined_in` its module."""
        return _TARGET.fullmatch(target) is not None and any(
            expression.fullmatch(target) for expression in self._matching
        )


def defined_in(module: str, value: object) -> bool:
    return isinstance(value, _DEFINED) and getattr(value, "__module__", None) == module


def _expression(pattern: str) -> re.Pattern[str]:
    module, _, name = pattern.partition(":")
    return re.compile(":".join(r"\.".join(map(_part, side.split("."))) for side in (module, name)))


def _part(part: str) -> str:
    return ("(?!_)" if part.startswith("*") else "") + part.replace("*", r"\w*")
