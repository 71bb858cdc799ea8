"""What travels from an answer to a later request, and what does not."""

from __future__ import annotations

import json

import pytest

from hyperscale.importing.draft import Answer, Call, marked
from hyperscale.importing.values import connect

TOKEN = "616461.faa908e45356f876"


def answered(body: object, url: str = "/login", kind: str = "application/json") -> Call:
    text = body if isinstance(body, str) else json.dumps(body)
    return Call("POST", url, answer=Answer(200, [("X-Trace", "abcdefghijkl")], text, kind))


def test_a_token_of_an_answer_is_a_variable_in_the_header() -> None:
    login = answered({"session": {"token": TOKEN}})
    me = Call("GET", "/me", headers={"Authorization": f"Bearer {TOKEN}"})
    (value,) = connect([login, me])
    assert (value.name, value.expression) == ("token", '.json()["session"]["token"]')
    assert value.giver is login
    assert me.headers == {"Authorization": f"Bearer {marked('token')}"}


def test_a_number_travels_under_the_name_of_an_id() -> None:
    cart = answered([{"id": 4711, "count": 55}], "/carts")
    pay = Call("POST", "/carts/4711/pay", body={"json": {"cartId": 4711, "count": 55}})
    (value,) = connect([cart, pay])
    assert (value.name, value.expression, value.type) == ("cart_id", '.json()[0]["id"]', "int")
    assert pay.url == f"/carts/{marked('cart_id')}/pay"
    assert pay.body == {"json": {"cartId": marked("cart_id"), "count": 55}}


@pytest.mark.parametrize(
    "body",
    [
        {"name": "lamp"},  # a word of everybody
        {"count": 4711},  # a number that is no id
        {"text": "two words and a few more"},
    ],
)
def test_what_only_looks_alike_stays(body: dict[str, object]) -> None:
    (sent,) = body.values()
    later = Call("POST", "/echo", body={"json": {"sent": sent}})
    assert connect([answered(body), later]) == []
    assert later.body == {"json": {"sent": sent}}


def test_what_the_user_sent_first_is_the_users() -> None:
    login = answered({"id": "ada@example.com"})
    login.body = {"json": {"user": "ada@example.com"}}
    later = Call("GET", "/mails", params={"to": "ada@example.com"})
    assert connect([login, later]) == []
    assert later.params == {"to": "ada@example.com"}


def test_hidden_fields_and_headers_travel() -> None:
    page = answered('<input type="hidden" name="csrf" value="f3a9">', "/form", "text/html")
    send = Call("POST", "/form", {"X-Trace": "abcdefghijkl"}, body={"form": {"csrf": "f3a9"}})
    values = connect([page, send])
    assert [(value.name, value.expression) for value in values] == [
        ("x_trace", '.headers["x-trace"]'),
        ("csrf", """.css('input[name="csrf"]').attrib["value"]"""),
    ]
    assert send.body == {"form": {"csrf": marked("csrf")}}
