"""Layers of a job by longest path."""

from __future__ import annotations

import pytest

from hyperscale.cluster.jobs.layers import layers
from tests.unit.cluster.jobs.making import needs


def test_the_worked_example() -> None:
    found = layers(
        [
            needs("Setup", is_test=False),
            needs("LoadTest"),
            needs("Validate", depends=("LoadTest",)),
            needs("Report", depends=("Validate", "LoadTest")),
        ]
    )
    assert found == (("Setup", "LoadTest"), ("Validate",), ("Report",))


def test_order_of_definition_does_not_matter() -> None:
    found = layers([needs("c", depends=("b", "a")), needs("b", depends=("a",)), needs("a")])
    assert found == (("a",), ("b",), ("c",))


@pytest.mark.parametrize(
    ("workflows", "sentence"),
    [
        ([needs("a", depends=("b",)), needs("b", depends=("a",))], "a, b wait for each other"),
        ([needs("a", depends=("a",))], "a wait for each other"),
        ([needs("a", depends=("x",))], "a depends on x, which is not part of the job"),
        ([needs("a"), needs("a")], "two workflows have the same name"),
    ],
)
def test_what_cannot_be_ordered(workflows: list[object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        layers(workflows)  # type: ignore[arg-type]


def test_many_that_wait_for_many_and_say_so_twice() -> None:
    names = [f"w{number}" for number in range(500)]
    dense = [needs(name, depends=tuple(names[:n]) * 2) for n, name in enumerate(names)]
    assert layers(dense) == tuple((name,) for name in names)
