"""Text without secrets: known values in every form, and what is secret by its place."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hyperscale
from hyperscale.errors import BadInput
from hyperscale.workload import secrets
from hyperscale.workload.secrets import (
    mask,
    mask_args,
    mask_body,
    mask_excerpt,
    mask_headers,
    mask_url,
    register,
    secret,
)

VALUE = 'pa"ss wörd/&1<2>'


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_known", {})
    monkeypatch.setattr(secrets, "_patterns", [])


def test_a_secret_is_read_from_the_environment_and_known_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("API_KEY", "TOPSECRET")
    assert mask("TOPSECRET") == "TOPSECRET"
    assert hyperscale.secret("API_KEY") == "TOPSECRET"
    assert mask("a TOPSECRET b") == "a ***API_KEY*** b"


def test_a_missing_secret_says_how_to_give_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("API_KEY", raising=False)
    with pytest.raises(BadInput) as refused:
        secret("API_KEY")
    assert "API_KEY" in refused.value.message
    assert refused.value.hint == "-e API_KEY=... or --secret API_KEY"
    assert secret("API_KEY", "of the author") == "of the author"
    assert mask("of the author") == "***API_KEY***"


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        json.dumps(VALUE),
        json.dumps(VALUE, ensure_ascii=False),
        repr(VALUE),
        html.escape(VALUE),
    ],
)
def test_a_value_is_found_in_every_form_it_takes(form: str) -> None:
    register("PW", VALUE)
    shown = mask(f"x {form} y")
    assert "***PW***" in shown
    assert "rd/&" not in shown
    assert "pa" not in shown.replace("***PW***", "")


@given(user=st.text("klmn", max_size=12), password=st.text("abcXYZ019/+ü", min_size=6, max_size=40))
def test_a_password_is_found_in_basic_credentials(user: str, password: str) -> None:
    secrets._known.clear()
    register("PW", password)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        credentials = encode(f"{user}:{password}".encode()).decode()
        shown = mask(f"Basic {credentials} was refused")
        before, found, after = shown.partition("***PW***")
        assert found
        assert after == " was refused"
        assert credentials.startswith(before.removeprefix("Basic "))
        assert len(before.removeprefix("Basic ")) <= -(-len(f"{user}:".encode()) * 8 // 6)


def test_the_longest_value_wins_and_short_ones_are_left_alone() -> None:
    register("SHORT", "12")
    register("PART", "TOPS")
    register("WHOLE", "TOPSECRET")
    assert mask("TOPSECRET TOPS 12") == "***WHOLE*** ***PART*** 12"


def test_an_excerpt_may_end_within_a_value() -> None:
    register("KEY", "TOPSECRET")
    assert mask_excerpt("sent TOPSEC") == "sent ***"
    assert mask_excerpt("sent TOP") == "sent TOP"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ada:hunter2@h.example/x", "https://ada:***@h.example/x"),
        ("https://ada:p@ss@h.example:80/x@y", "https://ada:***@h.example:80/x@y"),
        ("redis://:hunter2@h:6379/0", "redis://:***@h:6379/0"),
        ("http://h:8080/a?mail=a@b.c", "http://h:8080/a?mail=a@b.c"),
        ("http://h/?access_token=abc&page=2", "http://h/?access_token=***&page=2"),
        ("/x?page=2&apikey=abc#top", "/x?page=2&apikey=***"),
    ],
)
def test_urls(url: str, shown: str) -> None:
    assert mask_url(url) == shown


def test_headers_are_masked_by_name() -> None:
    headers = {
        "Authorization": "Bearer abc",
        "cookie": "sid=1",
        "Set-Cookie": "sid=1; Path=/",
        "X-Api-Key": "abc",
        "X-CSRF-Token": "abc",
        "Location": "https://ada:pw@h/",
        "Accept": "*/*",
    }
    assert mask_headers(headers) == {
        **dict.fromkeys(headers, "***"),
        "Location": "https://ada:***@h/",
        "Accept": "*/*",
    }


def test_bodies_lose_fields_by_name_and_what_the_headers_hold() -> None:
    basic = base64.b64encode(b"ada:hunter2").decode()
    headers = [
        ("Authorization", f"Basic {basic}"),
        ("Cookie", "theme=dark; sid=abc123"),
        ("Set-Cookie", "next=def456; Path=/shop, other=ghi789; Path=/shop"),
    ]
    body = json.dumps(
        {
            "password": 'a"b',
            "inner": json.dumps({"token": "xyz", "n": 1}),
            "echo": ["hunter2", basic, "abc123", "def456", "ghi789", "/shop"],
        }
    )
    shown = json.loads(mask_body(body, headers))
    assert shown["password"] == "***"
    assert json.loads(shown["inner"]) == {"token": "***", "n": 1}
    assert shown["echo"] == ["***"] * 5 + ["/shop"]
    assert mask_body("user=ada&password=hunter2") == "user=ada&password=***"


def test_a_recorded_command_names_variables_only() -> None:
    register("KEY", "TOPSECRET")
    typed = (
        "run t.py -e A=1 -eB=2 --env C=3 --env=D=4 -qe E=5 --token abc --token=abc --secret NAME "
        "--secret=NAME --env-file f -o out.json --host=https://u:p@h/?token=x --tag x=TOPSECRET"
    )
    assert " ".join(mask_args(typed.split())) == (
        "run t.py -e A=*** -eB=*** --env C=*** --env=D=*** -qe E=*** --token *** --token=*** "
        "--secret NAME --secret=NAME --env-file f -o out.json --host=https://u:***@h/?token=*** "
        "--tag x=***KEY***"
    )
