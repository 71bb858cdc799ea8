from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload import frames
from hyperscale.workload.durations import parse_duration


def raised(code: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it is
        code()
    return caught.value


def ours() -> object:
    return {}["price"]


def theirs() -> object:
    return json.loads("{")


def in_group() -> object:
    raise ExceptionGroup("of tasks", [raised(ours)])  # type: ignore[list-item]


@pytest.mark.parametrize("code", [ours, theirs])
def test_where_is_the_innermost_line_of_the_author(code: Callable[[], object]) -> None:
    line = code.__code__.co_firstlineno + 1
    assert frames.where(raised(code)) == f"test_frames.py:{line} in {code.__name__}"


def test_of_a_group_the_first_error_tells_where() -> None:
    error = raised(in_group)
    assert frames.where(error).endswith(" in ours")
    assert "in ours" in frames.author_traceback(error)


def test_frames_of_the_package_are_left_out() -> None:
    error = raised(lambda: parse_duration("never", "duration"))
    assert isinstance(error, BadInput)
    assert "durations.py" not in frames.author_traceback(error)
    assert frames.where(error).endswith("in <lambda>")


def test_a_neighbour_of_the_package_is_the_authors(tmp_path) -> None:
    path = frames._OURS.rstrip(os.sep) + "_tests" + os.sep + "shop.py"
    error = raised(lambda: exec(compile("1 / 0", path, "exec")))
    assert frames.where(error) == "shop.py:1 in <module>"


def test_a_long_traceback_keeps_its_end() -> None:
    def deep(depth: int) -> object:
        return deep(depth - 1) + deep(depth - 2) if depth else ours()

    told = frames.author_traceback(raised(lambda: deep(200)))
    assert len(told) <= frames.TRACEBACK_MAX + 10
    assert told.endswith("KeyError: 'price'\n")


def test_a_missing_variable_is_told_by_name() -> None:
    assert "-e NO_SUCH" in frames.variable_hint(raised(lambda: os.environ["NO_SUCH"]))
    assert not frames.variable_hint(raised(ours))
