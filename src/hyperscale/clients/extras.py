"""Libraries that come with an extra, imported when a test first uses them."""

from __future__ import annotations

import importlib
from typing import Any

from hyperscale.errors import BadInput


def library(module: str, extra: str) -> Any:
    """The module. Raises BadInput, which says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BadInput(
            f"self.client.{extra} needs {module.partition('.')[0]}, which is not installed",
            f"pip install 'hyperscale-loadtest[{extra}]'",
        ) from error
