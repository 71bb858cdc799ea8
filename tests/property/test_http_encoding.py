"""What authors pass in is sent faithfully or refused; what servers say never breaks anything."""

from __future__ import annotations

import contextlib
import gzip
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.clients.http.cookies import CookieJar
from hyperscale.clients.http.request import Call, RequestBuilder
from hyperscale.clients.http.route import Route
from hyperscale.clients.http.target import Target
from hyperscale.errors import BadInput
from hyperscale.workload.arguments import Data, Headers, Params
from hyperscale.workload.encoding import encode_form
from tests.unit.clients.requests import all_bytes, read

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


token = st.text("!#$%&'*+-.^_`|~0123456789abcXYZ", min_size=1, max_size=8)
value = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_categories=["Cc"]))
framing = st.sampled_from([("Content-Length", "3"), ("content-length", 10**9), ("X", None)])
pairs = st.lists(
    st.tuples(token, value | st.lists(value, max_size=3) | st.none()) | framing, max_size=5
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
pieces = st.lists(st.binary(max_size=20), max_size=5)
bodies = st.one_of(
    st.just({}),
    st.binary(max_size=200).map(lambda body: {"data": body}),
    st.binary(max_size=200).map(lambda body: {"data": Data(body)}),
    texts.map(lambda body: {"data": body}),
    pieces.map(lambda body: {"data": iter(body)}),
    st.dictionaries(texts, texts, max_size=3).map(lambda body: {"json": body}),
    st.dictionaries(texts, texts, max_size=3).map(lambda body: {"form": body}),
    st.dictionaries(texts, st.binary(max_size=20), max_size=3).map(lambda body: {"files": body}),
)


def expected_body(arguments: dict[str, Any]) -> bytes | None:
    match arguments:
        case {"data": bytes(body)}:
            return body
        case {"data": str(body)}:
            return body.encode()
        case {"data": Data(value=body)}:
            return bytes(body)
    return None


@given(
    st.sampled_from(["GET", "POST", "DELETE", "M-SEARCH"]) | token.map(str.upper),
    texts,
    st.lists(st.tuples(texts, texts | st.binary(max_size=5)), max_size=3),
    pairs,
    st.booleans(),
    bodies,
    st.sampled_from([None, "gzip"]),
)
def test_an_independent_reader_finds_what_the_author_gave(
    method: str,
    path: str,
    params: list[tuple[str, str | bytes]],
    headers: list[tuple[str, Any]],
    chunked: bool,
    body: dict[str, Any],
    compress: str | None,
) -> None:
    streamed = list(body["data"]) if "__next__" in dir(body.get("data")) else None
    if streamed is not None:
        body = {"data": iter(streamed)}
    if chunked:
        headers = [*headers, ("Transfer-Encoding", "chunked")]
    call = Call(method, f"http://h/{path}", params, headers, compress=compress)
    try:
        wire = all_bytes(BUILDER.build(tuple(call._replace(**body))))
    except BadInput:
        return
    head, content = read(wire)
    assert head.method == method.encode()
    target, _, query = head.target.partition(b"?")
    if not set(path) & set("?#%") and path == path.strip() and path:
        assert unquote_to_bytes(target) == f"/{path}".encode()
        found = [part.partition(b"=")[::2] for part in query.split(b"&")] if query else []
        assert [(unquote_to_bytes(name), unquote_to_bytes(text)) for name, text in found] == [
            (name.encode(), text.encode() if isinstance(text, str) else text)
            for name, text in params
        ]
    lines = [
        (name.lower().encode(), one.strip(" \t").encode("latin-1"))
        for name, many in headers
        if name.lower() not in ("content-length", "transfer-encoding")
        for one in (many if isinstance(many, list) else [many])
        if one is not None
    ]
    names = {name for name, _ in lines}
    assert [line for line in head.headers if line[0] in names] == lines
    if compress and dict(head.headers).get(b"content-encoding") == b"gzip":
        content = gzip.decompress(content)
    wanted = b"".join(streamed) if streamed is not None else expected_body(body)
    assert wanted is None or content == wanted
