"""A Postman collection (v2): each request becomes a step, in the groups of its folders.

Values that a request's test script sets for later ones are followed where they are taken out of a
JSON answer; other code of scripts is not run.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from hyperscale.importing.draft import Call, Draft, Step, Value, marked, unmarked
from hyperscale.importing.names import identifier, unused
from hyperscale.importing.python_text import quoted
from hyperscale.importing.requests import clean, hide_secrets, made_call, origin_of
from hyperscale.workload.secrets import is_sensitive

_VARIABLE = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_SET = re.compile(
    r"pm\.(?:environment|collectionVariables|globals|variables)\.set\(\s*['\"]([^'\"]+)['\"]\s*,"
    r"\s*(pm\.response\.json\(\)|\w+)((?:\.\w+|\[\d+\]|\[['\"][^'\"]+['\"]\])+)\s*\)"
)
_PARSED = re.compile(r"(\w+)\s*=\s*(?:pm\.response\.json\(\)|JSON\.parse\(\s*responseBody\s*\))")
_KEY = re.compile(r"\.(\w+)|\[(\d+)\]|\[['\"]([^'\"]+)['\"]\]")
_DYNAMIC = {"$guid": "6f1d2c3b-8a4e-4c5d-9b7f-0123456789ab", "$randomInt": "7"}


def read_postman(document: dict[str, Any], url: str, default: str) -> Draft:
    reader = _Reader(document, (url or default).rstrip("/"))
    steps = list(reader.steps(document.get("item") or [], ""))
    if not steps:
        return Draft("", "", [])
    origin = url.rstrip("/") or origin_of(reader.absolute[0])
    for step, absolute in zip(steps, reader.absolute, strict=True):
        (call,) = step.calls
        if origin_of(absolute) == origin_of(reader.absolute[0]):
            call.url = call.url.removeprefix(origin_of(absolute))
    name = clean(str((document.get("info") or {}).get("name") or "a collection"))
    draft = Draft(
        f"The requests of {' '.join(name.split())[:60]}, in the order of the collection.",
        origin,
        steps,
        values=reader.values,
        constants=reader.unknown,
        secrets=reader.secrets,
    )
    if reader.unknown:
        names = ", ".join(reader.unknown)
        draft.notes.append(f"the collection gives no value for these, the test does: {names}")
    hide_secrets(draft)
    return draft


class _Reader:
    def __init__(self, document: dict[str, Any], target: str) -> None:
        self._target = target
        self._given = {one["key"]: str(one.get("value") or "") for one in _variables(document)}
        self._given |= _DYNAMIC | {"$timestamp": str(int(time.time()))}
        self._auth = document.get("auth")
        self._by_script: dict[str, Value] = {}
        self._names: list[str] = []
        self.values: list[Value] = []
        self.unknown: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.absolute: list[str] = []  # the URL of each step

    def steps(self, items: list[dict[str, Any]], group: str, auth: Any = None) -> Iterator[Step]:
        for item in items:
            inherited = item.get("auth") or auth or self._auth
            if "item" in item:
                folder = unmarked(" ".join(str(item.get("name") or "").split()))
                yield from self.steps(item["item"], folder or group, inherited)
            elif item.get("request"):
                yield self._step(item, group, inherited)

    def _step(self, item: dict[str, Any], group: str, auth: Any) -> Step:
        request = item["request"]
        request = {"url": request} if isinstance(request, str) else request
        url = self._url(request.get("url") or "")
        self.absolute.append(url)
        headers = [(h["key"], h["value"]) for h in _enabled(request.get("header"))]
        call = made_call(request.get("method") or "GET", url, headers)
        call.body = self._body(request.get("body") or {})
        if "json" in call.body:
            call.headers = {k: v for k, v in call.headers.items() if k.lower() != "content-type"}
        self._authorize(call, request.get("auth") or auth or {})
        call.url = self._filled(call.url)
        call.replace(lambda _, value: self._filled(value) if isinstance(value, str) else value)
        name = unused(identifier(str(item.get("name") or ""), "request"), self._names)
        self._names.append(name)
        self._follow(item, call, name)
        return Step(name, [call], group)

    def _url(self, url: Any) -> str:
        raw = unmarked(url if isinstance(url, str) else url.get("raw") or "")
        for variable in _variables(url) if isinstance(url, dict) else ():
            raw = re.sub(rf":{re.escape(variable['key'])}\b", str(variable.get("value") or ""), raw)
        if first := re.match(r"\{\{\s*([^{}]+?)\s*\}\}", raw):
            raw = (self._given.get(first[1]) or self._target) + raw[first.end() :]
        raw = _VARIABLE.sub(lambda found: f"{{{{{found[1]}}}}}", raw)
        return raw if "://" in raw else f"http://{raw}"

    def _body(self, body: dict[str, Any]) -> dict[str, Any]:
        mode = body.get("mode")
        if mode == "raw" and body.get("raw"):
            text = unmarked(body["raw"])
            return _json(text) or {"data": text}
        if mode == "urlencoded":
            fields = _enabled(body.get("urlencoded"))
            return {"form": {clean(one["key"]): clean(one.get("value") or "") for one in fields}}
        if mode == "formdata":
            fields = [one for one in _enabled(body.get("formdata")) if one.get("type") != "file"]
            parts = {clean(one["key"]): (None, clean(one.get("value") or "")) for one in fields}
            return {"files": parts} if parts else {}
        if mode == "graphql":
            graphql = body.get("graphql") or {}
            sent = {"query": clean(graphql.get("query") or "")}
            variables = _json(unmarked(graphql.get("variables") or ""))
            return {"json": sent | ({"variables": variables["json"]} if variables else {})}
        return {}

    def _authorize(self, call: Call, auth: dict[str, Any]) -> None:
        kind = auth.get("type")
        given = {
            one["key"]: clean(str(one.get("value") or "")) for one in auth.get(kind or "") or []
        }
        if kind == "bearer":
            call.headers["Authorization"] = f"Bearer {given.get('token', '')}"
        elif kind == "basic":
            call.body["auth"] = (given.get("username", ""), given.get("password", ""))
        elif kind == "apikey" and given.get("in") != "query":
            call.headers[given.get("key", "X-Api-Key")] = given.get("value", "")

    def _filled(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name in self._by_script:
                of_script = self._by_script[name]
                if of_script not in self.values:
                    self.values.append(of_script)
                return marked(of_script.name)
            constant = identifier(name).strip("_").upper()
            if self._given.get(name):
                if not is_sensitive(name):
                    return unmarked(self._given[name])
                self.secrets[constant] = unmarked(self._given[name])
            elif is_sensitive(name):
                self.secrets[constant] = "none yet"
            else:
                self.unknown[constant] = "1"
            return marked(constant)

        return _VARIABLE.sub(value, text)

    def _follow(self, item: dict[str, Any], call: Call, step: str) -> None:
        """Values that the request's script takes out of the answer."""
        for event in item.get("event") or []:
            lines = (event.get("script") or {}).get("exec") or []
            script = lines if isinstance(lines, str) else "\n".join(lines)
            answers = {"pm.response.json()", *_PARSED.findall(script)}
            for name, holder, path in _SET.findall(script):
                if holder in answers:
                    keys = [
                        f"[{number}]" if number else f"[{quoted(unmarked(word or text))}]"
                        for word, number, text in _KEY.findall(path)
                    ]
                    taken = [*self._names, *(v.name for v in self._by_script.values())]
                    variable = unused(identifier(name), taken)
                    expression = f".json(){''.join(keys)}"
                    self._by_script[name] = Value(variable, call, expression, "str | int")


def _variables(holder: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in holder.get("variable") or [] if one.get("key")]


def _enabled(listed: Any) -> list[dict[str, Any]]:
    entries = listed if isinstance(listed, list) else []
    return [one for one in entries if one.get("key") and not one.get("disabled")]


def _json(text: str) -> dict[str, Any]:
    """A JSON body, in which a variable may stand without quotes."""
    quoted_ones = re.sub(r'(?<!["\w])(\{\{[^{}]+\}\})(?!["\w])', r'"\1"', text)
    for attempt in (text, quoted_ones):
        try:
            return {"json": clean(msgspec.json.decode(attempt))} if attempt.strip() else {}
        except msgspec.DecodeError:
            continue
    return {}
