"""Names for steps, variables and classes, out of paths, titles and keys."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from urllib.parse import unquote

from hyperscale.workload.scope import fold_ids
from hyperscale.workload.workflow import METHODS, SETTINGS, Workflow

_OF_WORKFLOWS = {*dir(Workflow), *Workflow.__annotations__, *SETTINGS, *METHODS}
_TAKEN = {*_OF_WORKFLOWS, "flow", "on_start", "on_stop", "assets", "asyncio", "self"}
_SAYS_NOTHING = re.compile(r"api|rest|v\d+|index|www|static", re.IGNORECASE)
# What a POST to such a path does is said by the path.
_ACTION = re.compile(
    r"(.*_)?(log_?(in|out)|sign_?(in|out|up)|register|checkout|search|pay|subscribe|token|refresh)"
)
LONGEST = 40


def identifier(text: str, fallback: str = "value") -> str:
    """A lower-case name of Python, as near to the text as it can be."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    name = re.sub(r"[^0-9a-z]+", "_", words.lower()).strip("_")[:LONGEST].strip("_")
    if not name:
        return fallback
    name = f"_{name}" if name[0].isdigit() else name
    reserved = keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name)
    return f"{name}_" if reserved or name in _TAKEN else name


def class_name(text: str) -> str:
    words = re.findall(r"[0-9a-zA-Z]+", text)
    name = "".join(word[0].upper() + word[1:] for word in words)[:LONGEST]
    return name if name and not name[0].isdigit() else f"Test{name}"


def call_name(method: str, path: str) -> str:
    """`items` for GET /items, `item` for GET /items/7, `post_login` for POST /login."""
    segments = [unquote(segment) for segment in path.partition("?")[0].split("/") if segment]
    words: list[str] = []
    for segment in segments:
        if "{id}" in fold_ids(f"/{segment}") or segment.startswith(("{", ":", "\ue000")):
            words[-1:] = [singular(words[-1])] if words else []
        elif not _SAYS_NOTHING.fullmatch(segment):
            words.append(re.sub(r"\.\w{2,4}$", "", segment))
    name = identifier("_".join(words[-2:]), "home")
    said = method in ("GET", "HEAD") or (method == "POST" and _ACTION.fullmatch(name))
    return name if said else identifier(f"{method}_{name}")


def singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, or with a number behind it the first that is free."""
    names = set(taken)
    number = 2
    wanted = name
    while wanted in names:
        wanted = f"{name.rstrip('_')}_{number}"
        number += 1
    return wanted
