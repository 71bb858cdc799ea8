"""The results inside the page, so that a report can be read back and compared later."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec

from hyperscale.errors import BadInput
from hyperscale.metrics.results import SCHEMA, Results, decode
from hyperscale.ui.html.markup import Html

_ID = "hyperscale-results"
# Inside a script element only these could end it or start a comment; JSON has an escape for each.
_UNSAFE = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def embed(results: Results) -> Html:
    return script_data(_ID, results)


def script_data(name: str, value: object) -> Html:
    data = msgspec.json.encode(value).decode().translate(_UNSAFE)
    return Html(f'<script type="application/json" id="{name}">{data}</script>')


def embedded(page: bytes) -> bytes:
    """The results as JSON, found without reading the page; empty where there are none."""
    _, _, rest = page.partition(f'id="{_ID}">'.encode())
    return rest.partition(b"</script>")[0]


def extract(html_text: str) -> Results:
    """The results a report was made from."""
    finder = _Finder()
    finder.feed(html_text)
    finder.close()
    if not finder.found:
        raise BadInput(
            "The HTML file holds no Hyperscale results.",
            "Give a report written by Hyperscale, or the JSON file of the run.",
        )
    try:
        results = decode("".join(finder.parts).encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise BadInput(
            f"The results inside the HTML file cannot be read: {error}.",
            f"This version reads {SCHEMA}; the file may be newer or damaged.",
        ) from error
    if results.schema != SCHEMA:
        raise BadInput(
            f"The results inside the HTML file are {results.schema}, not {SCHEMA}.",
            "Read it with the version of Hyperscale that wrote it.",
        )
    return results


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found = False
        self.parts: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" and ("id", _ID) in attrs and not self.found:
            self.found = self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.parts.append(data)
