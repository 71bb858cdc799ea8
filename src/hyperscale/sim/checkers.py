"""Checkers: observers that know what must never happen.

A checker stands outside the code it checks and knows everything in true time. It has a method
`on_<kind>` for each kind of observation it wants, called with the true time and the facts, and
`at_end` for what can only be judged over the whole run. Every checker is proven by a planted bug
(a planted bug of its scenario) that it must catch: see `Scenario.planted_bugs` and `runner.prove`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperscale.sim.world import World


class Checker:
    name: str = ""
    """How a failure is signed; the class name when empty."""

    world: World

    def attach(self, world: World) -> None:
        self.world = world

    def at_end(self) -> None:
        """The liveness phase is over and nothing has failed so far."""

    def fail(self, message: str) -> None:
        """Say what was broken, with the facts that prove it."""
        self.world.fail(self.name or type(self).__name__, message)
