"""The workflow that a URL on the command line makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperscale.cli.url_test import url_test
from hyperscale.engine.bundle import bundle
from hyperscale.engine.source import ClassSource, decode_source, encode_source
from hyperscale.errors import BadInput
from hyperscale.workload.plan import plan_test

URL = "http://127.0.0.1:8080/echo?q='a'"


def test_it_travels_as_any_other_and_keeps_its_values(tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_bytes(b'{"a": "\\n"}')
    made = url_test(URL, "", ["Accept: */*"], f"@{body}")
    there = decode_source(encode_source(bundle(ClassSource(made)))).load()
    (plan,) = plan_test(there).workflows
    (step,) = plan.steps
    assert (plan.name, step.method, step.target) == ("Post", "POST", URL)
    assert {name: argument.value for name, argument in step.optimized.items()} == {
        "url": URL,
        "headers": {"Accept": "*/*"},
        "data": body.read_bytes(),
    }
    assert not plan.warnings


def test_plain() -> None:
    (plan,) = plan_test([url_test(URL, "", [], None)]).workflows
    assert (plan.name, list(plan.steps[0].optimized)) == ("Get", ["url"])


@pytest.mark.parametrize(
    ("method", "header", "data", "sentence"),
    [
        ("BREW", [], None, "--method takes one of GET"),
        ("GET", [], "text", "--data is for POST, PUT, PATCH, not for GET"),
        ("", ["no colon"], None, "--header takes 'Name: value'"),
        ("", [], "@not/there", "--data @not/there: No such file"),
    ],
)
def test_what_is_refused(method: str, header: list[str], data: str | None, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        url_test(URL, method, header, data)
