"""A request as somebody else wrote it down, made the call that an author would write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from hyperscale.importing.draft import MARK, Call, Draft, marked, unmarked
from hyperscale.importing.names import identifier, unused
from hyperscale.workload.secrets import is_sensitive

# What a browser or the client adds by itself. Cookies are the client's own business.
_BY_ITSELF = re.compile(
    r":.*|sec-.*|host|connection|proxy-connection|keep-alive|content-length|cookie|user-agent"
    r"|accept-encoding|accept-language|cache-control|pragma|dnt|upgrade-insecure-requests|te|priority"
    r"|if-none-match|if-modified-since|origin|referer|transfer-encoding|x-requested-with"
    r"|postman-token|traceparent|tracestate",
    re.IGNORECASE,
)
_ASSET = re.compile(
    r"\.(css|js|mjs|map|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|otf|eot|mp4|webm|mp3)$", re.I
)
_ASSET_KIND = re.compile(r"image/|font/|video/|audio/|text/css|.*javascript|application/wasm")


def is_asset(path: str, kind: str = "") -> bool:
    """Whether a browser would keep it: a style sheet, a script, a picture, a font."""
    return bool(_ASSET.search(PurePosixPath(path).name) or _ASSET_KIND.match(kind.lower()))


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def made_call(
    method: str, url: str, headers: Iterable[tuple[str, str]] = (), body: str = "", host: str = ""
) -> Call:
    """A call of a URL; what goes to `host` is written as a path."""
    parts = urlsplit(url)
    path, params = unmarked(parts.path) or "/", parsed_query(parts.query)
    if parts.query and params is None:
        path += f"?{unmarked(parts.query)}"
    place = "" if origin_of(url) == host or not parts.netloc else origin_of(url)
    all_headers = [(name, unmarked(value)) for name, value in headers]
    kind = next((value for name, value in all_headers if name.lower() == "content-type"), "")
    content = body_of(body, kind) if body else {}
    implied = "form" in content or "files" in content or "json" in content
    kept = {
        name: value
        for name, value in all_headers
        if not _BY_ITSELF.fullmatch(name)
        and not (name.lower() == "content-type" and (implied or not body))
        and not (name.lower() == "accept" and ("*/*" in value or "text/html" in value))
    }
    return Call(method.upper(), place + path, kept, params, content)


def parsed_query(query: str) -> Any:
    """A query as parameters, if they are sent as the same bytes; else None."""
    pairs = parse_qsl(query, keep_blank_values=True)
    same = (urlencode(pairs), urlencode(pairs, quote_via=quote), urlencode(pairs, safe="/:,@{}"))
    return plain_pairs(pairs) if pairs and query in same else None


def plain_pairs(pairs: list[tuple[str, str]]) -> Any:
    """Pairs as a dict, where no name comes twice."""
    clean = [(unmarked(name), _number(unmarked(value))) for name, value in pairs]
    return dict(clean) if len({name for name, _ in clean}) == len(clean) else clean


def _number(text: str) -> str | int:
    return int(text) if re.fullmatch(r"0|[1-9]\d{0,8}", text) else text


def body_of(text: str, kind: str) -> dict[str, Any]:
    """The argument of the call that sends this body: json, form or data."""
    kind = kind.partition(";")[0].strip().lower()
    if kind.endswith("json"):
        try:
            return {"json": clean(msgspec.json.decode(text))}
        except msgspec.DecodeError:
            return {"data": unmarked(text)}
    if kind == "application/x-www-form-urlencoded":
        return {"form": plain_pairs(parse_qsl(text, keep_blank_values=True))}
    return {"data": unmarked(text)}


def clean(value: Any) -> Any:
    """A value of somebody else's JSON or YAML, without marks; a date of YAML is its text."""
    if isinstance(value, list):
        return [clean(inner) for inner in value]
    if isinstance(value, dict):
        return {unmarked(str(key)): clean(inner) for key, inner in value.items()}
    return value if value is None or isinstance(value, int | float) else unmarked(str(value))


def hide_secrets(draft: Draft) -> None:
    """Keys and passwords become constants that the environment can give, and no report shows."""
    names: dict[str, str] = {value: name for name, value in draft.secrets.items()}

    def hidden(name: str, value: str) -> str:
        if value not in names:
            names[value] = unused(identifier(name).strip("_").upper(), names.values())
            draft.secrets[names[value]] = value
        return marked(names[value])

    def change(name: str, value: Any) -> Any:
        if not isinstance(value, str) or not value or MARK.search(value) or not is_sensitive(name):
            return value
        scheme, space, credentials = value.partition(" ")
        if name.lower() == "authorization" and space:
            return f"{scheme} {hidden('token', credentials)}"
        return hidden(name, value)

    for step in draft.steps:
        for one in step.calls:
            one.replace(change)
            if "auth" in one.body:
                user, password = one.body["auth"]
                one.body["auth"] = (user, hidden("password", password))
