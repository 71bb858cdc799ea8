"""`hyperscale worker` on a machine with nothing else to do: other tests share this one, and a
worker that finds its machine busy takes nothing over."""

from __future__ import annotations

from hyperscale.cli import main
from hyperscale.nodes.worker.engine_runner import EngineRunner
from hyperscale.nodes.worker.runner import MachineUse

if __name__ == "__main__":
    EngineRunner.use = lambda _: MachineUse(5.0, 20.0)  # type: ignore[method-assign]
    main()
