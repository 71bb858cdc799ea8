"""The same text is the same test in every process; another text is another test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = """
import random
from dataclasses import dataclass

DICE = random.Random()


@dataclass
class Shop:
    name: str
    items: list


def path_of(item):
    return f"/items/{item}"
"""

TEST = """
import enum
import functools
import sys

from helpers import DICE, Shop, path_of
from hyperscale import Workflow, step
from hyperscale.testing import URL, Headers, HTTPOptions, HTTPResponse

TARGET = "http://127.0.0.1:1"
SHOPS = {"a": Shop("a", [1, 2]), "b": Shop("b", [])}


class Colour(enum.Enum):
    RED = 1


def twice(function):
    @functools.wraps(function)
    async def called(*args, **kwargs):
        await function(*args, **kwargs)
        return await function(*args, **kwargs)

    return called


def made(word):
    async def lookup(self) -> HTTPResponse:
        return await self.client.http.get(TARGET + "/" + word)

    return lookup


def unrelated():
    return 1


class Base(Workflow):
    names = {"alpha", "beta", "gamma", "delta"}
    colour = Colour.RED

    def item(self):
        return DICE.choice([one for one in (1, 2, 3) if one in {1, 2, "x", "y"}])


class Test(Base):
    vus = 2
    duration = "2s"
    http = HTTPOptions(timeout=5)

    def __init__(self, depth=1):
        self.depth = depth

    lookup = step()(made("word"))

    @step(weight=3)
    @twice
    async def listing(
        self, url: URL = TARGET + "/items", headers: Headers = {"accept": "x"}
    ) -> HTTPResponse:
        shop = SHOPS["a"]
        return await self.client.http.get(url + path_of(self.item()) + shop.name)


GIVEN = [Test]
"""

PROGRAM = """
import json
import sys

from hyperscale.engine.source import ClassSource

found = {}
for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    import load
    found[folder] = ClassSource(*load.GIVEN).identity().hex()
    del sys.path[0], sys.modules["load"], sys.modules["helpers"]
print(json.dumps(found))
"""

AGAIN = "return 1\n\n\nSHOPS['c'] = SHOPS\nALL = {unrelated, made}"

# What is replaced in the test, and by what.
UNIMPORTANT = {
    "the same": ("", ""),
    "an unrelated function": ("return 1\n", "# why\n    return 2\n"),
    "a place": ("class Base(", "# Moved down.\n\n\nclass Base("),
    "a docstring": ("class Test(Base):\n", 'class Test(Base):\n    """What it is for."""\n\n'),
}
IMPORTANT = {
    "a default": ('"/items"', '"/other"'),
    "a variable of the module": ("127.0.0.1:1", "127.0.0.1:2"),
    "what a function closes over": ('made("word")', 'made("other")'),
    "an option of a step": ("weight=3", "weight=4"),
    "a decorator": ("    @twice\n", ""),
    "an attribute of a base class": ('"delta"}', '"omega"}'),
    "inside an object of the author's": ('Shop("b", [])', 'Shop("b", [3])'),
    "an attribute": ("Colour.RED\n", "None\n"),
    "inside an object of ours": ("timeout=5", "timeout=6"),
    "inside a function": ('{1, 2, "x", "y"}', '{1, 2, "x", "z"}'),
    "another class": ("[Test]", "[Base]"),
    "an instance": ("[Test]", "[Test(2)]"),
    "another instance": ("[Test]", "[Test(3)]"),
    "what refers to itself": ("return 1", AGAIN),
}


def identities(folder: Path, seed: int) -> dict[str, str]:
    """Of all of them, as one process finds them."""
    names = {}
    for number, (name, (before, after)) in enumerate({**UNIMPORTANT, **IMPORTANT}.items()):
        assert before in TEST, name
        place = folder / str(number)
        place.mkdir(parents=True)
        test = TEST.replace(before, after) if before else TEST
        if after == AGAIN:
            test = test.replace("shop = SHOPS", "ALL; Test; shop = SHOPS")
        (place / "load.py").write_text(test)
        (place / "helpers.py").write_text(HELPERS)
        names[str(place)] = name
    called = folder / "called"
    called.mkdir()
    (called / "load.py").write_text(TEST)
    (called / "helpers.py").write_text(HELPERS.replace("/items/{item}", "/things/{item}"))
    names[str(called)] = "what it calls"
    env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", PROGRAM, *names]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return {names[place]: found for place, found in json.loads(ended.stdout).items()}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return identities(tmp_path_factory.mktemp("here"), 1)


def test_another_process_in_another_place_finds_the_same(
    tmp_path: Path, found: dict[str, str]
) -> None:
    assert identities(tmp_path / "elsewhere", 2) == found


def test_what_the_test_does_not_do_does_not_matter(found: dict[str, str]) -> None:
    assert len({found[name] for name in UNIMPORTANT}) == 1


def test_what_it_does_matters(found: dict[str, str]) -> None:
    every = ["the same", "what it calls", *IMPORTANT]
    assert len({found[name] for name in every}) == len(every)
