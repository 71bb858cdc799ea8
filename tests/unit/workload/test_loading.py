from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.loading import load_workflows
from hyperscale.workload.plan import plan_test
from hyperscale.workload.scaffold import scaffold

HEAD = """from __future__ import annotations
from hyperscale import Workflow, depends, step
from hyperscale.testing import HTTPResponse
"""

SHOP = (
    HEAD
    + """
class Base(Workflow):
    vus = 2

class _Hidden(Base):
    @step()
    async def hidden(self) -> HTTPResponse: ...

class Setup(Base):
    @step()
    async def prepare(self) -> HTTPResponse: ...

@depends("Setup")
class Buy(Base):
    @step()
    async def buy(self) -> HTTPResponse: ...

class Look(Base):
    @step()
    async def look(self) -> HTTPResponse: ...
"""
)

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    path, modules = list(sys.path), set(sys.modules)

    def write_file(text: str, name: str = "shop_under_test.py") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    yield write_file
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def names(path: str, *chosen: str) -> list[str]:
    return [workflow.__name__ for workflow in load_workflows(path, list(chosen))]


def test_workflows_in_definition_order(write: Write) -> None:
    assert names(write(SHOP)) == ["Setup", "Buy", "Look"]


def test_chosen_workflows_bring_what_they_depend_on(write: Write) -> None:
    path = write(SHOP)
    assert names(path, "Buy") == ["Setup", "Buy"]
    assert names(path, "Look") == ["Look"]
    assert names(path, "_Hidden") == ["_Hidden"]


def test_a_file_may_import_its_neighbours(write: Write) -> None:
    write("vus = 7", "neighbour_under_test.py")
    path = write(
        HEAD + "from neighbour_under_test import vus as n\nclass A(Workflow):\n"
        "    vus = n\n    @step()\n    async def a(self) -> HTTPResponse: ...\n"
    )
    (workflow,) = load_workflows(path)
    assert workflow.vus == 7


def test_imported_workflows_run_only_when_named(write: Write) -> None:
    write(SHOP, "other_shop_under_test.py")
    path = write("from other_shop_under_test import *\nclass Mine(Look):\n    pass\n")
    assert names(path) == ["Mine"]
    assert names(path, "Look") == ["Look"]


def test_an_unchanged_file_is_imported_once_and_a_changed_one_again(write: Write) -> None:
    path = write(SHOP)
    assert load_workflows(path) == load_workflows(path)
    write(SHOP.replace("Look", "Watch"))
    assert names(path) == ["Setup", "Buy", "Watch"]


def test_a_file_called_like_a_module_in_use_hides_nothing(write: Write) -> None:
    import json

    path = write(SHOP, "json.py")
    assert names(path, "Look") == ["Look"]
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "shop_under_test.py defines no workflow"),
        ("", "shop_under_test.py defines no workflow"),
        (HEAD + "class A(Workflow):\n    pass\n", "A in shop_under_test.py has no steps"),
        ("def (:\n", r"shop_under_test.py line 1: invalid syntax: def \(:"),
        ("x = (\n", r"shop_under_test.py line 1: '\(' was never closed"),
        ("if True:\nx = 1\n", "shop_under_test.py line 2: expected an indented block"),
        ("x = 1\n1 / 0\n", "shop_under_test.py line 2: ZeroDivisionError: division by zero"),
        ("import nothing_like_it\n", "shop_under_test.py line 1: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", "shop_under_test.py line 2: the file ends the program"),
        (
            HEAD + "class A(Workflow):\n    vus = 0\n",
            "shop_under_test.py line 4: A: vus is 0 but must be at least 1",
        ),
        ("x = '\x00'", "shop_under_test.py line"),
    ],
)
def test_what_is_wrong_with_a_file(write: Write, text: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        load_workflows(write(text))


def test_an_error_in_a_neighbour_names_the_line_that_imports_it(write: Write) -> None:
    write("x = (\n", "broken_neighbour_under_test.py")
    with pytest.raises(BadInput, match=r"broken_neighbour_under_test.py line 1: .* never closed"):
        load_workflows(write("import broken_neighbour_under_test\n"))
    write("1 / 0\n", "failing_neighbour_under_test.py")
    with pytest.raises(BadInput, match=r"shop_under_test\.py line 2: ZeroDivisionError"):
        load_workflows(write("\nimport failing_neighbour_under_test\n"))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone\.py does not exist"):
        load_workflows(str(tmp_path / "gone.py"))
    with pytest.raises(BadInput, match="is a directory"):
        load_workflows(str(tmp_path))
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(BadInput, match="is not a Python file"):
        load_workflows(str(tmp_path / "notes.txt"))


def test_an_unknown_name_lists_the_known(write: Write) -> None:
    with pytest.raises(BadInput, match="has no workflow called Bye") as caught:
        load_workflows(write(SHOP), ["Bye"])
    assert caught.value.hint == "did you mean Buy? (there are Setup, Buy, Look)"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/", 'https://shop/?q="{x}"'])
def test_the_starter_is_a_test_file_without_warnings(write: Write, url: str) -> None:
    plan = plan_test(load_workflows(write(scaffold(url), "starter_under_test.py")))
    (quickstart,) = plan.workflows
    assert quickstart.is_test
    assert plan.warnings == ()
    assert len(quickstart.thresholds) == 3
    assert quickstart.steps[0].target == url
    assert [[step.name for step in stage] for stage in quickstart.stages] == [
        ["home"],
        ["search"],
        ["search_answers"],
    ]


def test_several_files_are_one_test(write: Write) -> None:
    shop = write(SHOP)
    other = write(
        HEAD
        + "\nclass Pay(Workflow):\n    @step()\n    async def pay(self) -> HTTPResponse: ...\n",
        "pay_under_test.py",
    )

    def found(*chosen: str) -> list[str]:
        return [one.__name__ for one in load_workflows(shop, list(chosen), [other, shop])]

    assert found() == ["Setup", "Buy", "Look", "Pay"]
    assert found("Pay", "Buy") == ["Setup", "Buy", "Pay"]
    with pytest.raises(BadInput, match=r"shop_under_test.py and pay_under_test.py have no"):
        found("Payy")


def test_a_name_in_two_files_is_refused(write: Write) -> None:
    shop, other = write(SHOP), write(SHOP, "copy_under_test.py")
    with pytest.raises(BadInput, match=r"shop_under_test.py and .*copy_under_test.py both define"):
        load_workflows(shop, [], [other])


def test_files_of_one_name_are_told_apart(write: Write, tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        text = SHOP.replace("Look", f"Look{number}")
        paths.append(write(text, f"{number}/same_under_test.py"))
    names = [f"Look{number}" for number in range(3)]
    found = [load_workflows(path, [name])[0] for path, name in zip(paths, names, strict=True)]
    assert [one.__name__ for one in found] == names
    assert len({one.__module__ for one in found}) == 3


def test_an_empty_file_among_several_is_named(write: Write) -> None:
    with pytest.raises(BadInput, match=r"bare_under_test.py defines no workflow"):
        load_workflows(write(SHOP), [], [write("", "bare_under_test.py")])


def test_a_step_at_fault_is_named_by_its_own_line(write: Write) -> None:
    text = (
        HEAD
        + """
class Shop(Workflow):
    @step()
    async def login(self) -> HTTPResponse: ...

    @step("logn")
    async def buy(self) -> HTTPResponse: ...
"""
    )
    with pytest.raises(BadInput, match=r"shop_under_test.py line 9: Shop.buy waits for 'logn'"):
        load_workflows(write(text))
