"""The view of a run in progress. `rich` is imported only by the modules that draw with it."""

from hyperscale.ui.live.source import Source, View, Watched

__all__ = ["Source", "View", "Watched"]
