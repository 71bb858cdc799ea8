"""What a hook's annotations mean, once they are resolved to types.

Annotations come as types, as strings (`from __future__ import annotations`), inside `Optional` or
with names that only exist later in the file. Each is resolved by itself, so that one unknown name
does not hide the others.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")


class _Provided:
    """Marks the return annotation of a method whose value goes to other workflows."""


class _Used:
    """Marks the return annotation of a method that receives values of other workflows."""


# To a type checker `Provide[str]` and `Use[str]` are simply `str`.
Provide = Annotated[T, _Provided]
Use = Annotated[T, _Used]

_UNRESOLVED = (NameError, AttributeError, TypeError, SyntaxError, ImportError, ValueError, KeyError)


def resolve(function: Callable[..., Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of `function` that can be resolved; `names` are known beside its globals."""
    resolved = {}
    for name, annotation in function.__annotations__.items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(
                holder, function.__globals__, dict(names), include_extras=True
            )
        except _UNRESOLVED:
            continue
        resolved[name] = hints[name]
    return resolved


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types an annotation allows beside None, looked up inside `Annotated` and unions."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(kind for member in get_args(annotation) for kind in alternatives(member))
    if annotation is None or annotation is type(None):
        return ()
    return (annotation,)


def allows_none(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return allows_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return any(allows_none(member) for member in get_args(annotation))
    return annotation is None or annotation is type(None)


def is_subclass(annotation: Any, base: type) -> bool:
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, base)


def provides(annotation: Any) -> bool:
    return _Provided in getattr(annotation, "__metadata__", ())


def uses(annotation: Any) -> bool:
    return _Used in getattr(annotation, "__metadata__", ())


def text_of(annotation: Any) -> str:
    """An annotation as the author would write it."""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
