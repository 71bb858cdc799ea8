"""`--show-settings`: all settings of a command, their values, and who set them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hyperscale.errors import ExitCode

if TYPE_CHECKING:
    from hyperscale.config.sections import Row


def show(rows: Sequence[Row]) -> int:
    from hyperscale.cli import streams
    from hyperscale.cli.tables import table

    for line in table(("SETTING", "VALUE", "FROM"), rows):
        streams.say(line)
    return int(ExitCode.PASSED)
