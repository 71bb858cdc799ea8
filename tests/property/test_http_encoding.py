"""What authors pass in is sent faithfully or refused; what servers say never breaks anything."""

from __future__ import annotations

import contextlib
from urllib.parse import parse_qsl

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.http.cookies import CookieJar
from hyperscale.clients.http.request import RequestBuilder
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import Data, Headers, Params, encode_form

anything = st.text(max_size=30)
BUILDER = RequestBuilder("", {"Accept": "*/*"}, lambda target: Route(target, None, None))


@given(st.dictionaries(anything, anything, max_size=5))
def test_headers_are_one_line_each_or_refused(headers: dict[str, str]) -> None:
    try:
        lines, names = Headers(headers).lines()
    except BadInput:
        return
    assert lines.count(b"\r\n") == lines.count(b"\n") == lines.count(b"\r") == len(headers)
    assert names == {name.lower() for name in headers}


@given(st.lists(st.tuples(anything, anything), max_size=5))
def test_params_and_forms_read_back(pairs: list[tuple[str, str]]) -> None:
    query = Params(pairs).query()
    assert query.isascii()
    assert parse_qsl(query[1:], keep_blank_values=True) == pairs
    assert parse_qsl(encode_form(pairs).decode(), keep_blank_values=True) == pairs


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=10,
)


@given(json_values.filter(lambda value: value is not None and not isinstance(value, str)))
def test_json_reads_back(value: object) -> None:
    body, content_type = Data(value).body()
    assert msgspec.json.decode(body) == value
    assert content_type == "application/json"


@given(anything | anything.map("http://{}".format) | anything.map("http://h/{}".format))
def test_a_url_becomes_one_request_line_or_is_refused(url: str) -> None:
    try:
        request = BUILDER.build(("GET", url))
    except BadInput:
        return
    line, _, rest = request.wire.partition(b"\r\n")
    assert line.startswith(b"GET /")
    assert line.count(b" ") == 2
    assert rest.startswith(b"Host: ")
    lines = 4 if request.target.auth else 3
    assert rest.count(b"\r\n") == rest.count(b"\n") == lines


@given(anything, anything)
def test_following_a_location_gives_a_target_or_a_refusal(path: str, location: str) -> None:
    with contextlib.suppress(BadInput):
        Target(Target("http://h/x").resolve(location))


@given(
    st.lists(
        st.lists(
            anything
            | st.sampled_from(
                [
                    "a=b",
                    "Path=/x",
                    "Domain=t.test",
                    "Max-Age=1",
                    "Max-Age=-1",
                    "Secure",
                    "Expires=x",
                ]
            ),
            max_size=4,
        ).map("; ".join),
        max_size=5,
    )
)
def test_no_set_cookie_breaks_the_jar(lines: list[str]) -> None:
    jar = CookieJar()
    for line in lines:
        jar.store(line, "a.t.test", "/x/y")
    sent = jar.matching("a.t.test", "/x/y", True)
    assert len(sent) <= len(jar) <= len(lines)
    assert jar.matching("other.test", "/x/y", True) == []
