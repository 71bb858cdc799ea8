"""What an author wrote, as a digest that is the same in every process that loads it.

The pickled bytes of a class are not: they hold random ids, the order of sets, and which equal
values happen to be one object. Here a class is its name, its bases, its attributes and the bytecode
of its methods; a function brings its defaults, what it closes over and the module variables it
reads. What the author's own modules define counts by content, plain data by value, and what a
library defines by its name: nobody writes down the state of a `random.Random()`.
"""

from __future__ import annotations

import dis
import enum
import functools
import marshal
import types
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from pathlib import PurePath
from re import Pattern
from typing import Any, Final, cast
from uuid import UUID

import msgspec

DIGEST_BYTES: Final = 16
# Values of libraries whose text says all there is.
_TEXTS: Final = (
    date, time, timedelta, tzinfo, Decimal, Fraction, PurePath, Pattern, UUID, range,
)  # fmt: skip
_READS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_NO_REFERENCES: Final = 2  # the last version of marshal that writes equal values alike
# Filled in when a value is used, not when it is written.
_CACHES: Final = frozenset({"__weakref__", "__dict__", "optimized"})


def identity_of(workflows: Iterable[object], own_modules: Collection[str]) -> bytes:
    """Of classes and instances; `own_modules` are those the author wrote."""
    walk = _Walk(own_modules)
    for workflow in workflows:
        walk.see(workflow)
    return walk.digest()


class _Walk:
    def __init__(
        self, own: Collection[str], met: dict[int, tuple[int, object]] | None = None
    ) -> None:
        self._own = own
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        # What may refer to itself, in the order in which it was met.
        self._met = met if met is not None else {}

    def digest(self) -> bytes:
        return self._hash.digest()

    def see(self, value: object) -> None:
        plain = _marshalled(value)
        if plain is not None:
            self._note("plain", plain)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, tuple | frozenset):
            self._parts(value)
        elif isinstance(value, enum.Enum):
            self._note("enum", f"{_name(type(value))}.{value.name}")
        elif isinstance(value, str | bytes | int | float | complex):
            self._note("text", f"{_name(type(value))} {_shown(value)}")
        elif isinstance(value, _TEXTS):
            self._note("text", f"{_name(type(value))} {value!r}")
        elif isinstance(value, types.ModuleType):
            self._note("module", value.__name__)
        elif id(value) in self._met:
            self._note("met", str(self._met[id(value)][0]))
        else:
            self._met[id(value)] = (len(self._met), value)
            self._first_time(value)

    def _first_time(self, value: object) -> None:
        if isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, staticmethod | classmethod | types.MethodType):
            self._pieces("method", type(value).__name__, value.__func__)
        elif isinstance(value, property):
            self._pieces("property", value.fget, value.fset, value.fdel)
        elif isinstance(value, functools.partial):
            self._pieces("partial", value.func, value.args, value.keywords)
        elif isinstance(value, types.CellType):
            self._cell(value)
        elif isinstance(value, list | dict | set | types.MappingProxyType):
            self._parts(value)
        elif isinstance(value, types.BuiltinFunctionType):
            self._note("builtin", _name(value))
        else:
            self._object(value)

    def _parts(self, value: Collection[Any] | types.MappingProxyType[Any, Any]) -> None:
        self._note(type(value).__name__, str(len(value)))
        if isinstance(value, set | frozenset):
            for digest in sorted(self._apart(one) for one in value):
                self._note("one", digest)
        elif isinstance(value, dict | types.MappingProxyType):
            for key, one in value.items():
                self.see(key)
                self.see(one)
        else:
            for one in value:
                self.see(one)

    def _apart(self, value: object) -> bytes:
        """Of one that has no place in an order."""
        walk = _Walk(self._own, dict(self._met))
        walk.see(value)
        return walk.digest()

    def _class(self, value: type) -> None:
        self._note("class", _name(value))
        if not self._is_own(value.__module__):
            return
        self.see(value.__bases__)
        for name, one in vars(value).items():
            special = name.startswith("__") and name.endswith("__")
            if special and not isinstance(one, types.FunctionType | classmethod | staticmethod):
                continue  # where it stands, what it is for: not what it does
            if not isinstance(one, types.GetSetDescriptorType | types.MemberDescriptorType):
                self._note("attribute", name)
                self.see(one)

    def _function(self, value: types.FunctionType) -> None:
        self._note("function", value.__name__)
        if self._is_own(value.__globals__.get("__name__")):
            self._code(value.__code__)
            for name in sorted(_globals_of(value.__code__) & value.__globals__.keys()):
                self._note("global", name)
                self.see(value.__globals__[name])
            self._pieces("given", value.__defaults__, value.__kwdefaults__, value.__annotations__)
        else:  # a decorator's, perhaps: then what it was put on is in what it closes over
            self._note(
                "library", f"{value.__globals__.get('__name__')} {value.__code__.co_qualname}"
            )
        self.see(value.__closure__ or ())
        self.see(vars(value).get("__wrapped__"))
        self.see(vars(value).get("__hyperscale_hook__"))

    def _cell(self, value: types.CellType) -> None:
        try:
            self._pieces("cell", value.cell_contents)
        except ValueError:
            self._note("cell", "empty")

    def _code(self, value: types.CodeType) -> None:
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        counts = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount)
        self._note("code", value.co_code)
        self._pieces("names", value.co_name, *names, *counts, value.co_flags)
        for one in value.co_consts:
            self.see(one)

    def _object(self, value: object) -> None:
        module = type(value).__module__
        self._pieces("object", type(value))
        if not self._is_own(module) and module.split(".")[0] != "hyperscale":
            return
        for name, one in sorted(_attributes(value)):
            self._note("attribute", name)
            self.see(one)

    def _pieces(self, what: str, *values: object) -> None:
        self._note(what, str(len(values)))
        for value in values:
            self.see(value)

    def _note(self, what: str, text: str | bytes) -> None:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        self._hash.update(f"{what} {len(data)} ".encode())
        self._hash.update(data)

    def _is_own(self, module: object) -> bool:
        return module in self._own


def _marshalled(value: object) -> bytes | None:
    """Plain data in one step; None for what holds anything else."""
    if isinstance(value, types.CodeType):
        return None
    try:
        return marshal.dumps(cast(Any, value), _NO_REFERENCES)
    except (ValueError, RecursionError):
        return None


def _shown(value: str | bytes | float | complex) -> str:
    """A text or number of an own type, as its base type shows it: secrets hide themselves."""
    for kind in (str, bytes, int, float):
        if isinstance(value, kind):
            return kind.__repr__(value)
    return complex.__repr__(value)


def _globals_of(code: types.CodeType) -> set[str]:
    found = {one.argval for one in dis.get_instructions(code) if one.opname in _READS}
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found |= _globals_of(inner)
    return found


def _attributes(value: object) -> list[tuple[str, Any]]:
    if is_dataclass(value):
        names: Iterable[str] = [field.name for field in fields(value)]
    elif isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
    else:
        slots = (vars(cls).get("__slots__", ()) for cls in type(value).__mro__)
        listed = (name for one in slots for name in ((one,) if isinstance(one, str) else one))
        names = {*getattr(value, "__dict__", ()), *listed} - _CACHES
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]


def _name(value: type | Callable[..., Any]) -> str:
    return f"{value.__module__}.{value.__qualname__}"
