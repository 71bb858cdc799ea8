"""`LocalRunner` under the path that existing programs import."""

from hyperscale.local import LocalRunner

__all__ = ["LocalRunner"]
