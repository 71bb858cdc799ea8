"""What a step does, for people: protocol, method and target, as far as the code shows it."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from hyperscale.workload.arguments import URL, OptimizedArgument
from hyperscale.workload.results import CustomResult
from hyperscale.workload.secrets import mask_url
from hyperscale.workload.type_hints import alternatives, is_subclass

_SHORT = {"websocket": "ws"}  # clients whose metrics have a shorter name


class Display(NamedTuple):
    kind: str = ""  # "http", "custom", or "" for a step that is not measured
    method: str = ""
    target: str = ""


def display_of(
    function: Callable[..., Any], returns: Any, arguments: Iterable[OptimizedArgument]
) -> Display:
    """Read from the call `self.client.<kind>.<method>(...)` in the body and the URL it is given."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if any(is_subclass(kind, CustomResult) for kind in alternatives(returns)) or code is None:
        return Display("custom")
    kind, method = _client_call(code)
    target = next((str(argument.value) for argument in arguments if isinstance(argument, URL)), "")
    if not target:
        written = (value for value in code.co_consts if isinstance(value, str))
        target = next((value for value in written if value.startswith(("http://", "https://"))), "")
    kind = _SHORT.get(kind, kind) or "http"
    return Display(kind, method.upper(), mask_url(target))


def _client_call(code: Any) -> tuple[str, str]:
    attributes = [
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD")
    ]
    found = ("", "")
    for (owner, kind), (_, method) in pairwise(pairwise(attributes)):
        if owner == "client":
            found = (kind, method)
    return found
