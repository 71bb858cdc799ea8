"""A scheduler's process does not look through what stays, nor after every few new objects."""

from __future__ import annotations

import gc

from hyperscale.scheduler.http.process import COLLECT_AFTER, tune_collector


def test_what_is_there_is_not_looked_at_again() -> None:
    thresholds = gc.get_threshold()
    try:
        tune_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] == COLLECT_AFTER
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
