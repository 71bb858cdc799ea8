"""What an author gives to a client that sends bytes."""

from __future__ import annotations

from typing import Any

from hyperscale.workload.arguments import Data


def payload_of(data: Any) -> bytes:
    """Bytes as they are, text as UTF-8, what `Data` takes as that encodes it."""
    return data if isinstance(data, bytes) else Data.of(data).body()[0]
