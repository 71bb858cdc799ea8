"""Generator processes of `hyperscale run`, started before its options are read.

They and this process then import their modules side by side. How many are needed, and with what
environment, is a guess from the command line as it was typed: where it proves wrong the run ends
them and starts its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from hyperscale.engine.cores import usable_cores
from hyperscale.engine.spawning import EarlyChildren

# With these there is nothing to start here, or it cannot be told yet with what environment.
_NOT_YET = frozenset({"-h", "--help", "--cluster", "--env-file"})


def start_generators(words: Sequence[str]) -> EarlyChildren | None:
    typed = list(_flags(words))
    count = _count(dict(typed))
    try:
        return EarlyChildren(count, {**os.environ, **_variables(typed)}) if count else None
    except (OSError, ValueError):  # no more processes, or no such variable: the run will tell
        return None


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each flag with what may be its value: the rest of its word, or the word behind it."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            yield name, value if equals else following
        elif word.startswith("-"):
            yield word[:2], word[2:] or following


def _count(typed: Mapping[str, str]) -> int:
    """0: leave it to the run."""
    if typed.keys() & _NOT_YET or "HYPERSCALE_CLUSTER" in os.environ:
        return 0
    if "--once" in typed:
        return 1
    said = [typed[name] for name in ("-w", "--workers", "--processes") if name in typed]
    wanted = said[0] if said else os.environ.get("HYPERSCALE_WORKERS", "-1")
    if wanted == "-1":
        wanted = str(usable_cores())
    users = [typed[name] for name in ("-u", "--vus", "--users") if name in typed]
    few = [int(number) for number in (wanted, *users[:1]) if number.isdecimal()]
    return min(few) if wanted.isdecimal() and min(few) <= 2 * usable_cores() else 0


def _variables(typed: Sequence[tuple[str, str]]) -> dict[str, str]:
    pairs = [value.partition("=") for name, value in typed if name in ("-e", "--env")]
    found = {name: value for name, equals, value in pairs if equals}
    return found | ({"NO_COLOR": "1"} if "--no-color" in dict(typed) else {})
