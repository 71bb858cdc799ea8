"""numpy, imported when it is first used or when there is time for it (`load`).

Its import takes a third of the time that a generator or the command line needs to start. Modules
on the way to the first request say `from hyperscale.metrics.arrays import np`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)
            return value

    np = _Numpy()

__all__ = ["ArrayLike", "Floats", "Ints", "np"]

ArrayLike: TypeAlias = "npt.ArrayLike"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"


def load() -> None:
    """Import it now."""
    import numpy  # noqa: F401
