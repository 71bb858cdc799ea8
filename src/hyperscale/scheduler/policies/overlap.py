"""What a tick does when earlier instances of its schedule have not ended.

Judged inside the store's atomic step, so two coordinators cannot both see "nothing runs".
"""

from __future__ import annotations

from typing import NamedTuple

from hyperscale.scheduler.model.schedule import Overlap


class Entry(NamedTuple):
    insert: bool
    waiting: bool = False
    cancel_others: bool = False


def decide_entry(policy: Overlap, live: int, waiting: int, line_max: int) -> Entry:
    """`live` instances have not ended, `waiting` of them wait for the others."""
    if policy is Overlap.ALLOW or live == 0:
        return Entry(insert=True)
    if policy is Overlap.SKIP:
        return Entry(insert=False)
    if policy is Overlap.CANCEL_PREVIOUS:
        # Those who wait are cancelled at once, so the line never grows beyond one.
        return Entry(insert=True, waiting=True, cancel_others=True)
    if waiting >= line_max:
        return Entry(insert=False)
    return Entry(insert=True, waiting=True)
