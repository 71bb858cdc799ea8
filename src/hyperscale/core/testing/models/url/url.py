"""`URL` under the path that existing tests import."""

from hyperscale.workload.arguments import URL

__all__ = ["URL"]
