"""Whole things given out by share: users, iterations, rows of data.

Turns are taken as evenly as shares allow: of 3 to 2 they are a b a b a. So much as there is, each
has its part within one of the exact one, and more for all is never less for anybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import gcd


@lru_cache(maxsize=64)
def turns(shares: tuple[int, ...]) -> tuple[int, ...]:
    """Whose turn it is, over and over."""
    least = gcd(*shares)
    weights = [share // least for share in shares]
    whole, waiting, found = sum(weights), [0] * len(weights), []
    for _ in range(whole):
        waiting = [had + more for had, more in zip(waiting, weights, strict=True)]
        first = waiting.index(max(waiting))
        waiting[first] -= whole
        found.append(first)
    return tuple(found)


def apportion(total: int, shares: Sequence[int]) -> list[int]:
    order = turns(tuple(shares))
    rounds, rest = divmod(total, len(order))
    each, more = Counter(order), Counter(order[:rest])
    return [rounds * each[number] + more[number] for number in range(len(shares))]
