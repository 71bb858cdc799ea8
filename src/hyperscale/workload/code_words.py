"""What the code of a workflow says: its string constants, and the metrics it makes.

Tags of calls and metrics made in code are declared nowhere. So that a typo in a threshold can
still be told from them before the load, the code of the methods is read for their names, together
with the functions, texts and mappings of the same module that it uses.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import msgspec

from hyperscale.workload.custom_metrics import MetricKind

_KINDS: dict[str, MetricKind] = {  # by the method of `self.metrics`
    "trend": "distribution",
    "counter": "count",
    "gauge": "sample",
    "rate": "rate",
}
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_SILENT = ("EXTENDED_ARG", "NOP", "PRECALL")


class CodeWords(msgspec.Struct, frozen=True):
    words: frozenset[str] = frozenset()
    metrics: dict[str, MetricKind] = {}
    names_metrics: bool = False  # some metrics get their names only when the code runs


def words_of(attributes: Iterable[object]) -> CodeWords:
    """Of what the author wrote into a class: methods, and constants that these may use."""
    reading = _Reading()
    for attribute in attributes:
        reading.take(attribute)
    return CodeWords(frozenset(reading.words), reading.metrics, reading.names_metrics)


class _Reading:
    def __init__(self) -> None:
        self.words: set[str] = set()
        self.metrics: dict[str, MetricKind] = {}
        self.names_metrics = False
        self._read: set[FunctionType] = set()

    def take(self, value: Any) -> None:
        """Whatever else a class or module holds is not touched, not even by asking what it is."""
        kind = type(value)
        if issubclass(kind, str):
            self.words.add(value)
        elif issubclass(kind, Mapping | tuple | list | frozenset):
            self.words.update(word for word in value if isinstance(word, str))
        elif issubclass(kind, staticmethod | classmethod):
            self.take(value.__func__)
        elif issubclass(kind, property):
            self.take(value.fget)
        elif issubclass(kind, FunctionType) and value not in self._read:
            self._read.add(value)
            self._function(inspect.unwrap(value))

    def _function(self, function: FunctionType) -> None:
        for code in _nested(function.__code__):
            for constant in code.co_consts:
                self.take(constant)
            self._metrics(code)
            for name in code.co_names:
                self._used(function, function.__globals__.get(name))
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # not assigned yet
                self._used(function, cell.cell_contents)

    def _used(self, function: FunctionType, value: Any) -> None:
        is_function = issubclass(type(value), FunctionType)
        if not is_function or inspect.unwrap(value).__globals__ is function.__globals__:
            self.take(value)

    def _metrics(self, code: CodeType) -> None:
        used = (*code.co_names, *code.co_varnames, *code.co_freevars)
        steps = [step for step in dis.get_instructions(code) if step.opname not in _SILENT]
        for attribute, given, then in zip(steps, steps[1:], steps[2:], strict=False):
            if attribute.opname not in _ATTRIBUTE or attribute.argval not in _KINDS:
                continue
            if isinstance(given.argval, str) and given.opname == "LOAD_CONST" and _calls(then):
                self.metrics[given.argval] = _KINDS[attribute.argval]
            elif "metrics" in used:
                self.names_metrics = True


def _calls(step: dis.Instruction) -> bool:
    """The constant before it was the whole argument, not the beginning of an f-string."""
    return step.opname.startswith(("CALL", "KW_NAMES")) or isinstance(step.argval, tuple)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
