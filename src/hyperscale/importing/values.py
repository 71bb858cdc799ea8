"""Values that travel: a token, an id or a hidden field of an answer that a later request sends.

What was in a request before it was in an answer is the user's own (a name, a search), and stays as
it is. Cookies are no concern of this: the client keeps them for each user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from hyperscale.importing.draft import Answer, Call, Value, leaves, marked, unmarked
from hyperscale.importing.names import call_name, identifier, singular, unused
from hyperscale.importing.python_text import quoted
from hyperscale.workload.secrets import is_sensitive

# Shorter texts, and numbers, travel under names such as `id` and `csrf_token` alone: `7` and `en`
# are in half of all answers by chance.
LONG = 12
_TRAVELS = re.compile(r"(^|[_.-])(id|uuid|ref|key|nonce|state|code|csrf|xsrf|slug|etag)s?$", re.I)
LEAVES_MOST = 5_000  # of one answer
_OF_SERVERS = re.compile(
    r"date|server|via|age|expires|vary|connection|content-.*|cache-.*|set-cookie|last-modified"
    r"|access-control-.*|strict-.*|alt-svc|location|transfer-encoding|x-(cache|frame|powered).*",
    re.IGNORECASE,
)


def connect(calls: list[Call]) -> list[Value]:
    """Put marks where a request sends what an earlier answer held; the values they stand for."""
    values: list[Value] = []
    origins: dict[str | int, tuple[str, Value]] = {}  # by value, those not used yet as well
    sent: set[str] = set()
    for call in calls:
        _take(call, origins, values)
        sent |= _sent(call)
        if call.answer is None:
            continue
        for found, key, expression in _held(call.answer):
            if found in origins or str(found) in sent or not _may_travel(found, key):
                continue
            kind = "int" if isinstance(found, int) else "str"
            origins[found] = (key, Value("", call, expression, kind))
    return values


def _may_travel(value: str | int, key: str) -> bool:
    named = bool(_TRAVELS.search(_words(key))) or is_sensitive(key)
    if isinstance(value, int):
        return named
    return bool(value) and not re.search(r"\s", value) and (named or len(value) >= LONG)


def _words(key: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", key)


def _take(call: Call, origins: dict[str | int, tuple[str, Value]], values: list[Value]) -> None:
    def used(found: str | int) -> str:
        key, value = origins[found]
        if not value.name:
            plain = identifier(_words(key))
            if plain in ("id_", "id", "ids", "key", "ref", "value", "href"):
                holder = singular(call_name("GET", value.giver.url).rstrip("_"))
                plain = f"{holder}_{plain.rstrip('_')}"
            value.name = unused(plain, [other.name for other in values])
            values.append(value)
        return marked(value.name)

    def change(name: str, sent: Any) -> Any:
        if isinstance(sent, bool) or not isinstance(sent, str | int):
            return sent
        if isinstance(sent, int):
            named = sent in origins and (_may_travel(sent, name) or _known(sent, origins))
            return used(sent) if named else sent
        if sent in origins:
            return used(sent)
        words = [used(word) if word in origins else word for word in sent.split(" ")]
        return " ".join(words)  # as in "Bearer TOKEN"

    call.replace(change)
    path, question, query = call.url.partition("?")
    segments = path.split("/")
    for place, segment in enumerate(segments):
        plain = unquote(segment)
        if plain in origins:
            segments[place] = used(plain)
        elif plain.isdecimal() and int(plain) in origins:
            segments[place] = used(int(plain))
    call.url = "/".join(segments) + question + query


def _known(value: int, origins: dict[str | int, tuple[str, Value]]) -> bool:
    """Whether an earlier call took the value; a number of one digit proves nothing."""
    return value >= 10 and bool(origins[value][1].name)


def _sent(call: Call) -> set[str]:
    path = urlsplit(call.url).path
    texts = {str(text) for part in (call.params, call.body) for text in leaves(part)}
    return texts | {unquote(segment) for segment in path.split("/")}


def _held(answer: Answer) -> Iterator[tuple[str | int, str, str]]:
    """What an answer holds: the value, its name, and how to reach it from the response."""
    for name, value in answer.headers:
        if not _OF_SERVERS.fullmatch(name):
            yield unmarked(value), name, f".headers[{quoted(name.lower())}]"
    if "json" in answer.kind:
        try:
            body = msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            return
        for number, found in enumerate(_in_json(body, "", ".json()")):
            if number == LEAVES_MOST:
                return
            yield found
    elif "html" in answer.kind:
        page = _Fields()
        page.feed(answer.body)
        for tag, name, attribute, value in page.found:
            selector = f'{tag}[name="{name}"]'
            yield unmarked(value), name, f".css({quoted(selector)}).attrib[{quoted(attribute)}]"


def _in_json(value: Any, name: str, path: str) -> Iterator[tuple[str | int, str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _in_json(inner, key, f"{path}[{quoted(unmarked(key))}]")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _in_json(inner, name, f"{path}[{place}]")
    elif isinstance(value, str):
        yield unmarked(value), name, path
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value, name, path


class _Fields(HTMLParser):
    """Hidden fields of forms, and what a page tells its scripts in `meta`."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        attribute = {"input": "value", "meta": "content"}.get(tag, "")
        name = given.get("name", "")
        hidden = tag == "meta" or given.get("type") == "hidden"
        if attribute and hidden and re.fullmatch(r"[\w.:\[\]-]+", name) and given.get(attribute):
            self.found.append((tag, name, attribute, given[attribute]))
