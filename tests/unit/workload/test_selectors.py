from __future__ import annotations

import pytest

from hyperscale.errors import BadInput
from hyperscale.workload.selectors import read_scope
from hyperscale.workload.thresholds import parse_threshold


@pytest.mark.parametrize(
    ("text", "name", "pairs"),
    [
        ("http_reqs", "http_reqs", {}),
        ("http_reqs{}", "http_reqs", None),
        ("http_reqs{login}", "http_reqs", {"step": "login"}),
        ("http_reqs{step:login}", "http_reqs", {"step": "login"}),
        ("http_reqs{ kind:api, status : 200 }", "http_reqs", {"kind": "api", "status": "200"}),
        ("http_reqs {kind:api}", "http_reqs", {"kind": "api"}),
        ("http_reqs{name:/items/{id}}", "http_reqs", {"name": "/items/{id}"}),
        ("a{name:/{x,y}/{id},step:b}", "a", {"name": "/{x,y}/{id}", "step": "b"}),
        ("a{name:'GET /a,b'}", "a", {"name": "GET /a,b"}),
        ('a{name:"/{open", step:"b"}', "a", {"name": "/{open", "step": "b"}),
        ("a{'of a: step'}", "a", {"step": "of a: step"}),
        ("a{name:http://x:80/}", "a", {"name": "http://x:80/"}),
        ("a{name:it's}", "a", {"name": "it's"}),
        ("a{name:GET /items/{id}}", "a", {"name": "GET /items/{id}"}),
    ],
)
def test_scopes(text: str, name: str, pairs: dict[str, str] | None) -> None:
    if pairs is None:
        with pytest.raises(BadInput):
            read_scope(text)
        return
    scope = read_scope(text)
    assert scope == (name, pairs)
    assert read_scope(str(scope)) == scope
    parsed = parse_threshold(f"{text}: p(95)<5")
    assert (parsed.scope, parsed.expression) == (str(scope), "p(95)<5")
    assert parse_threshold("p(95)<5", text) == parsed


def test_a_scope_is_shown_without_spare_spaces_and_quotes() -> None:
    assert str(read_scope("a{ login, kind : 'api' }")) == "a{step:login,kind:api}"
    assert str(read_scope("a{name:'x,y'}")) == 'a{name:"x,y"}'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a{step:login", "the braces of 'a{step:login' do not close at its end"),
        ("a{step:login}}", "the braces of 'a{step:login}}' do not close at its end"),
        ("a{step:login} b", "the braces of 'a{step:login} b' do not close at its end"),
        ("a{name:'x}", 'the braces of "a{name:\'x}" do not close at its end'),
        ("a{step:}", "'a{step:}' selects by 'step:', not by a key and a value"),
        ("a{:x}", "'a{:x}' selects by ':x', not by a key and a value"),
        ("a{x,}", "'a{x,}' selects by '', not by a key and a value"),
        ("a{x:1,x:2}", "'a{x:1,x:2}' selects by 'x' twice"),
    ],
)
def test_selectors_that_are_not_understood(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_scope(text)
    assert caught.value.message == sentence
    assert caught.value.hint
