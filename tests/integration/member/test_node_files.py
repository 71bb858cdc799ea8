"""A node as a process may open as many files as the system lets it."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import os, resource, signal, sys
from pathlib import Path
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
from hyperscale.nodes.manager.process import serve
from hyperscale.nodes.manager.settings import ManagerSettings
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.runtime.host import Address
from hyperscale.runtime.real import run

def ready(manager):
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

node = NodeSettings(
    id="m1", bind=Address("127.0.0.1", 0), data=Path(sys.argv[1]), role="manager",
    voters=("m1",), plaintext="loopback",
)
run(serve(ManagerSettings(node=node), ready))
"""


def test_a_manager_raises_its_soft_limit_of_open_files(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= hard <= 256:
        pytest.skip("there is nothing to raise")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 256
