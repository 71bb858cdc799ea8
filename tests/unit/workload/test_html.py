"""Selectors and forms on responses, on pages as servers write them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from hyperscale.clients.http.head import Head
from hyperscale.workload.responses import HTTPResponse
from hyperscale.workload.results import CallFailed, Outcome

SHOP = """
<!doctype html><html><head><title>Shop &amp; more</title></head><body>
<form id=search action=/search?old=1#top><input name=q type=search value="lamp"></form>
<ul class=items>
  <li><a href="/items/1">Lamp</a> <b>12 €</b>
  <li><a href="items/2">Tablë</a> <b>90 €</b>
</ul>
<form name="login" action="session" method="POST">
  <input type="hidden" name="csrf" value="f3a9&quot;">
  <input name="user"><input type="password" name="password">
  <input type="checkbox" name="remember" value="yes"><input type="checkbox" name="terms" checked>
  <button name="go" value="in">Log in</button>
</form>
</body></html>
"""


@dataclass
class Sent:
    url: str
    method: str = "GET"
    wire: bytes = b""
    size: int = 0
    hops: tuple[str, ...] = ()


def page(
    body: str, url: str = "http://shop.example/a/page", kind: str = "text/html; charset=utf-8"
) -> HTTPResponse:
    content = body.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}".encode()
    return HTTPResponse.answered(Sent(url), Head(head, 10**6), content, 1.0, 1.0, 2.0, 3.0, 10)


def fields(controls: str) -> dict[str, Any]:
    return page(f"<form>{controls}</form>").form().fields


def test_css_and_xpath_meet_text_and_attributes() -> None:
    shop = page(SHOP)
    assert shop.css("title::text").get() == "Shop & more"
    assert shop.css("ul.items a::attr(href)").getall() == ["/items/1", "items/2"]
    assert shop.xpath("//li[a=$name]/b/text()", name="Tablë").get() == "90 €"
    assert [item.css("b::text").get() for item in shop.css("li")] == ["12 €", "90 €"]
    assert shop.css("h1").get() is None


def test_xml_is_read_as_xml() -> None:
    feed = page(
        '<?xml version="1.0" encoding="utf-8"?><r xmlns:x="urn:x"><x:I>ä</x:I><link>l</link></r>',
        kind="application/rss+xml",
    )
    assert feed.xpath("//x:I/text()", namespaces={"x": "urn:x"}).get() == "ä"
    assert feed.xpath("//link/text()").get() == "l"


def test_a_page_is_parsed_once_and_its_response_still_travels() -> None:
    shop = page(SHOP)
    assert shop.css("title")[0].root is shop.xpath("//title")[0].root
    assert pickle.loads(pickle.dumps(shop)).css("b::text").getall() == ["12 €", "90 €"]


@pytest.mark.parametrize("body", ["", "   ", "no <b>tags", "\x00"])
def test_a_body_that_is_no_page_has_nothing_to_find(body: str) -> None:
    assert page(body).css("form").getall() == []


def test_without_an_answer_there_is_no_page() -> None:
    failed = HTTPResponse.failed(Sent("http://h/"), Outcome.REFUSED, "nobody listens", 1.0, 2.0)
    with pytest.raises(CallFailed, match="nobody listens"):
        failed.css("a")


def test_a_form_is_filled_as_in_a_browser() -> None:
    login = page(SHOP).form("login")
    assert (login.method, login.url) == ("POST", "http://shop.example/a/session")
    assert login.fields == {"csrf": 'f3a9"', "user": "", "password": "", "terms": "on"}

    assert login.fill(user="ada", password=7, remember=True, terms=False, go=True) is login
    assert login.fields == {
        "csrf": 'f3a9"',
        "user": "ada",
        "password": "7",
        "remember": "yes",
        "go": "in",
    }


@pytest.mark.parametrize(
    "which", ["search", "#search", "form[action]:not([name])", "input[name=q]"]
)
def test_a_form_is_found_by_name_id_or_selector(which: str) -> None:
    search = page(SHOP).form(which)
    assert search.method == "GET"
    assert search.url == "http://shop.example/search"  # a browser replaces the query by the fields
    assert search.fields == {"q": "lamp"}


@pytest.mark.parametrize(
    ("body", "which", "sentence"),
    [
        (SHOP, None, "has 2 forms; its forms: search, login"),
        (SHOP, "logn", "has no form 'logn'; its forms: search, login"),
        (SHOP, "form", "has 2 forms 'form'"),
        ("<p>Sorry", None, "has no form; its forms: none"),
    ],
)
def test_a_form_that_is_not_there_or_not_the_only_one(
    body: str, which: str | None, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        page(body).form(which)


def test_unknown_fields_are_refused() -> None:
    login = page(SHOP).form("login")
    with pytest.raises(ValueError, match="no field 'usr'; it has csrf, user, password, remember"):
        login.fill(usr="ada")
    with pytest.raises(ValueError, match="'user' is a field to fill in"):
        login.fill(user=True)


def test_names_that_are_no_python_names_and_lists() -> None:
    form = page('<form><input name="user[name]"><input name=tag></form>').form()
    form.fill({"user[name]": "ada"}, tag=["a", 1])
    assert form.fields == {"user[name]": "ada", "tag": ["a", "1"]}


@pytest.mark.parametrize(
    ("controls", "sent"),
    [
        ("<input name=a value=1><input name=a value=2>", {"a": ["1", "2"]}),
        ("<input value=nameless><input name='' value=1><input name=d disabled value=1>", {}),
        ("<fieldset disabled><input name=a value=1></fieldset><input name=b value=2>", {"b": "2"}),
        ("<input type=CHECKBOX name=a checked value=x>", {"a": "x"}),
        (
            "<input type=radio name=r value=1><input type=radio name=r value=2 checked>",
            {"r": "2"},
        ),
        ("<input type=submit name=s><input type=reset name=r><input type=file name=f>", {}),
        ("<input type=image name=i><button type=button name=b value=1>B</button>", {}),
        ("<textarea name=t>\n one\n&lt;two&gt;</textarea>", {"t": " one\n<two>"}),
        ("<select name=s><option> A  b <option value=2>B</select>", {"s": "A b"}),
        ("<select name=s><option>A<option selected>B</select>", {"s": "B"}),
        ("<select name=s><option disabled>Choose<option>A</select>", {"s": "A"}),
        ("<select name=s><option selected disabled>Choose<option>A</select>", {}),
        (
            "<select name=s><optgroup disabled><option>A</optgroup><option>B</select>",
            {"s": "B"},
        ),
        ("<select name=s multiple><option>A</select>", {}),
        (
            "<select name=s multiple><option selected>A<option>B<option selected>C</select>",
            {"s": ["A", "C"]},
        ),
        ("<select name=s></select>", {}),
    ],
)
def test_what_an_untouched_form_sends(controls: str, sent: dict[str, Any]) -> None:
    assert fields(controls) == sent


def test_controls_outside_of_their_form() -> None:
    body = """
      <input name=before form=f value=1>
      <form id=f><input name=own value=2><input name=other form=g value=3></form>
      <form id=g></form>
      <form id=h><input name=lost form=nowhere value=4></form>
    """
    assert page(body).form("f").fields == {"before": "1", "own": "2"}
    assert page(body).form("g").fields == {"other": "3"}
    assert page(body).form("h").fields == {}


@pytest.mark.parametrize(
    ("body", "url"),
    [
        ("<form>", "http://shop.example/a/page"),
        ('<form action="">', "http://shop.example/a/page"),
        ('<form action="  next ">', "http://shop.example/a/next"),
        ('<form action="../up">', "http://shop.example/up"),
        ('<form action="//other.example/x">', "http://other.example/x"),
        ('<base href="/deep/"><form action="x">', "http://shop.example/deep/x"),
        ('<base href="/deep/"><form method=post>', "http://shop.example/a/page?n=1"),
        ('<form method="post" action="?step=2">', "http://shop.example/a/page?step=2"),
        ('<form method="dialog" action="https://x.example/?a=1#b">', "https://x.example/"),
    ],
)
def test_where_a_form_goes(body: str, url: str) -> None:
    assert page(body, "http://shop.example/a/page?n=1").form().url == url


def test_the_extra_is_named_when_it_is_missing() -> None:
    program = (
        "import sys; sys.modules['parsel'] = None\n"
        "from hyperscale.workload.html import parse\n"
        "parse('<a>', '')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "install hyperscale-loadtest[html]" in ended.stderr
