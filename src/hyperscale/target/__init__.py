"""The embedded HTTP target: something fast, honest and on demand misbehaving to test against.

`running()` gives one in a child process (demo, tests, benchmarks), `Target` one on your own event
loop, `serve_forever()` one for the command line. docs/target.md lists its paths.
"""

from hyperscale.target.process import Options, TargetProcess, running
from hyperscale.target.serve import serve_forever
from hyperscale.target.server import Target

__all__ = ["Options", "Target", "TargetProcess", "running", "serve_forever"]
