"""The command line. `main` is the `hyperscale` program; everything else is imported when used,
so that `--version` and a typing mistake answer at once."""

from __future__ import annotations

import sys


def main() -> None:
    from hyperscale.cli.app import execute

    sys.exit(execute(sys.argv[1:]))
