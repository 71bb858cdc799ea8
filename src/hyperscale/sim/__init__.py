"""The simulated body of the runtime, and the machinery that tries to break what runs on it.

`run(scenario, seed)` tells one history of a cluster in virtual time; the seed fixes every delay,
loss, crash and torn write in it. See `scenario` for how to write one.
"""

from hyperscale.sim.checkers import Checker
from hyperscale.sim.host import SimHost
from hyperscale.sim.runner import Report, prove, run, sweep
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.world import World

__all__ = ["Checker", "Report", "Scenario", "SimHost", "World", "prove", "run", "sweep"]
