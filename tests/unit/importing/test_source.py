"""Whatever stands in a recording, the file is Python that sends just that."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.importing import imported
from hyperscale.importing.access_log import read_access_log
from hyperscale.importing.curl import read_curl
from hyperscale.importing.draft import Call, marked
from hyperscale.importing.names import call_name, class_name, identifier
from hyperscale.importing.python_text import laid_out, quoted
from hyperscale.importing.source import request, source
from hyperscale.workload.loading import load_workflows
from hyperscale.workload.plan import plan_test

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Co"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.integers(0, 5))
def test_a_value_is_written_as_itself(value: Any, depth: int) -> None:
    assert ast.literal_eval(laid_out(value, depth)) == value


@given(TEXTS, TEXTS)
def test_a_variable_stands_between_texts(before: str, behind: str) -> None:
    written = quoted(f"{before}{marked('token')}{behind}")
    assert eval(written, {"token": "T"}) == f"{before}T{behind}"


@given(TEXTS)
def test_names_are_names(text: str) -> None:
    assert identifier(text).isidentifier()
    assert class_name(text).isidentifier()
    assert call_name("POST", f"/{text}").isidentifier()


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/", "home"),
        ("GET", "/api/v1/items", "items"),
        ("GET", "/items/77", "item"),
        ("GET", "/categories/6f1d2c3b-8a4e-4c5d-9b7f-0123456789ab/items", "category_items"),
        ("POST", "/login", "login"),
        ("POST", "/items", "post_items"),
        ("GET", "/client", "client_"),
        ("GET", "/import", "import_"),
        ("DELETE", "/orders/7", "delete_order"),
    ],
)
def test_names_of_steps(method: str, path: str, name: str) -> None:
    assert call_name(method, path) == name


HOSTILE = [
    'x"""\nimport os\nos.abort()\n"""',
    "__import__('os').abort()",
    "{__import__('os').abort()}",
    "\\N{BULLET}\\",
    "\ue000evil\ue001",
    "\u2028line\rbreaks\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_file_becomes_code(text: str, tmp_path: Path) -> None:
    """Every text of a collection is somebody else's: it is data in the test, or it is nothing."""
    collection = {
        "info": {"name": text, "schema": "postman"},
        "item": [
            {
                "name": text,
                "item": [
                    {
                        "name": text,
                        "request": {
                            "method": "POST",
                            "header": [{"key": "X-Note", "value": text}],
                            "url": {"raw": "http://127.0.0.1/a"},
                            "body": {
                                "mode": "raw",
                                "raw": msgspec.json.encode({"a": text}).decode(),
                            },
                        },
                    }
                ],
            }
        ],
    }
    given_file, made = tmp_path / "given.json", tmp_path / "made_of_hostile.py"
    given_file.write_bytes(msgspec.json.encode(collection))
    made.write_text(imported(given_file, made).source)
    tree = ast.parse(made.read_text())
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    (name,) = [node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)][1:]
    assert called == {"step", f"self.{name}", "self.client.http.post"}
    assert plan_test(load_workflows(made)).warnings == ()


def test_a_method_without_a_verb_of_its_own() -> None:
    assert request(Call("PROPFIND", "/a"), "http", 0) == 'http.request("PROPFIND", "/a")'
    searching = Call("GET", "/a", body={"json": {"q": 1}})
    assert request(searching, "http", 0) == 'http.request("GET", "/a", json={"q": 1})'


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("curl -XPUT a/b -d x=1 -d y=2", 'put("/b", form={"x": 1, "y": 2})'),
        ("curl -sSLo out a/b?q=1", 'get("/b", params={"q": 1})'),
        ("curl -d '{\"a\": 1}' a/b", 'post("/b", json={"a": 1})'),
        ("curl --data-binary @body.bin a/b", 'post("/b", data=File("body.bin"))'),
        ("curl -F photo=@a.png a/b", 'post("/b", files={"photo": File("a.png")})'),
        ("curl -H 'X-A: b' --url a", 'get("/", headers={"X-A": "b"})'),
        ("FOO=1 /usr/bin/curl -I a/b | grep x", 'head("/b")'),
    ],
)
def test_curl(command: str, written: str) -> None:
    assert f"return await self.client.http.{written}" in source(read_curl(command, ""), "T", "t.py")


def line(second: int, request: str = "GET /a", status: int = 200) -> str:
    at = f"04/May/2026:09:{second // 60:02}:{second % 60:02} +0000"
    return f'::1 - - [{at}] "{request} HTTP/1.1" {status} 9'


def test_the_rate_of_a_log_is_the_rate_that_was_seen() -> None:
    steady = read_access_log([line(second) for second in range(300)], "", "http://a", False)
    assert steady.load == {"rate": "1/s", "duration": "5m"}
    rising = [line(second) for second in range(180) for _ in range(second // 60 + 1)]
    ramp = read_access_log(rising, "", "http://a", False)
    assert ramp.load == {
        "rate": "1/s",
        "stages": [("1m", "1.5/s"), ("1m", "2.5/s"), ("1m", "3/s")],
    }


def test_the_mix_of_a_log() -> None:
    lines = [line(1), line(2), line(3), *[line(4, f"GET /b/{n}") for n in (1, 1, 2)]]
    lines.append(line(5, "GET /x", 404))
    draft = read_access_log([*lines, line(6, "GET /a.css")], "", "http://a", False)
    assert [(step.name, step.weight) for step in draft.steps] == [("a", 1), ("b", 1)]
    assert draft.constants == {"B_PATHS": {"/b/1": 2, "/b/2": 1}}
    assert len(draft.notes) == 2
