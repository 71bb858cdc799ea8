"""Which page is shown: all workflows, or one of them. Only a key turns the page."""

from __future__ import annotations

from hyperscale.metrics.results import Results, WorkflowResult


class Pages:
    def __init__(self) -> None:
        self._index: int | None = None

    def index(self, results: Results) -> int | None:
        """Of the workflow shown; None: all of them."""
        total = len(results.workflows)
        if total == 1:
            return 0
        return self._index if self._index is not None and self._index < total else None

    def next(self, results: Results) -> None:
        """From all to the first, and from the last to all."""
        after = -1 if self._index is None else self._index
        self._index = after + 1 if after + 1 < len(results.workflows) else None

    def choose(self, number: int) -> None:
        """By the number a workflow has in the list; 0 is all of them."""
        self._index = number - 1 if number else None

    def shown(self, results: Results) -> list[WorkflowResult]:
        index = self.index(results)
        return results.workflows if index is None else [results.workflows[index]]
