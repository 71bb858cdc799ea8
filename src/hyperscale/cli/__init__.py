"""The command line. `main` is the `hyperscale` program; everything else is imported when used,
so that `--version` and a typing mistake answer at once."""

from __future__ import annotations

import os
import sys


def main() -> None:
    from hyperscale.cli.descriptors import secure

    secure()
    early = None
    if sys.argv[1:2] == ["run"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the generators get it
        from hyperscale.cli.early import start_generators

        early = start_generators(sys.argv[2:])

    from hyperscale.cli.app import execute

    sys.exit(execute(sys.argv[1:], early))
