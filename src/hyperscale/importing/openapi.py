"""An OpenAPI document (3.x): each operation becomes a step, with the examples it gives.

Where it gives none, values follow from the schema: they have the right shape and no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from hyperscale.errors import BadInput
from hyperscale.importing.draft import Call, Draft, Step, marked, unmarked
from hyperscale.importing.names import call_name, identifier, unused
from hyperscale.importing.requests import clean, origin_of

METHODS = ("post", "get", "head", "options", "put", "patch", "delete")  # made before it is read
DEEPEST = 6  # references in references
_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "ada@example.com",
    "uri": "https://example.com/",
    "uuid": "6f1d2c3b-8a4e-4c5d-9b7f-0123456789ab",
}


def read_openapi(document: dict[str, Any], url: str, default: str) -> Draft:
    version = str(document.get("openapi") or document.get("swagger"))
    if not version.startswith("3"):
        raise BadInput(
            f"the document is of OpenAPI {version}, and only 3.x is read",
            "swagger2openapi and editor.swagger.io convert it",
        )
    server = url or _server(document)
    absolute = server if "://" in server else default.rstrip("/") + server
    reader = _Reader(document, urlsplit(absolute).path.rstrip("/"))
    steps = list(reader.steps())
    title = clean(str((document.get("info") or {}).get("title") or "the API"))
    draft = Draft(
        f"Each operation of {' '.join(title.split())[:60]} once, in the order of its description.",
        origin_of(absolute),
        steps,
        secrets=reader.secrets,
        notes=reader.notes,
    )
    if reader.secrets:
        names = ", ".join(reader.secrets)
        draft.notes.append(f"the API asks for {names}: the test says where to give it")
    return draft


def _server(document: dict[str, Any]) -> str:
    server = (document.get("servers") or [{"url": "/"}])[0]
    variables = server.get("variables") or {}
    text: str = server["url"]
    for name, variable in variables.items():
        text = text.replace(f"{{{name}}}", str(variable.get("default", "")))
    return unmarked(text)


class _Reader:
    def __init__(self, document: dict[str, Any], base: str) -> None:
        self._document = document
        self._base = base
        self._names: list[str] = []
        self.secrets: dict[str, str] = {}
        self.notes: list[str] = []

    def steps(self) -> Iterator[Step]:
        for path, item in (self._document.get("paths") or {}).items():
            resolved = self._at(item)
            for method in METHODS:
                operation = resolved.get(method)
                if operation and operation.get("deprecated"):
                    self.notes.append(f"left out {method.upper()} {path}, which is deprecated")
                elif operation:
                    yield self._step(method, path, operation, resolved.get("parameters") or [])

    def _step(self, method: str, path: str, operation: dict[str, Any], shared: list[Any]) -> Step:
        title = operation.get("operationId") or ""
        name = unused(identifier(title) if title else call_name(method.upper(), path), self._names)
        self._names.append(name)
        tags = operation.get("tags") or []
        call = Call(method.upper(), "")
        step = Step(name, [call], group=clean(str(tags[0])) if tags else "")
        url = self._base + unmarked(path)
        params: dict[str, Any] = {}
        found = [self._at(one) for one in (*shared, *(operation.get("parameters") or []))]
        for one in {(one["in"], one["name"]): one for one in found}.values():
            value = self._of_parameter(one)
            if one["in"] == "path":
                argument = identifier(one["name"])
                step.defaults[argument] = value
                url = url.replace(f"{{{one['name']}}}", marked(argument))
            elif one["in"] == "query" and (one.get("required") or _has_example(one)):
                params[clean(one["name"])] = value
            elif one["in"] == "header" and one.get("required"):
                call.headers[clean(one["name"])] = str(value)
        call.url, call.params = url, params or None
        if "requestBody" in operation:
            call.body = self._body(self._at(operation["requestBody"]))
        self._authorize(call, operation.get("security", self._document.get("security")) or [])
        return step

    def _of_parameter(self, parameter: dict[str, Any]) -> Any:
        content = parameter.get("content") or {}
        holder = next(iter(content.values()), parameter)
        return self._example(holder)

    def _body(self, body: dict[str, Any]) -> dict[str, Any]:
        for kind, media in (body.get("content") or {}).items():
            value = self._example(media)
            if "json" in kind:
                return {"json": value}
            if kind == "application/x-www-form-urlencoded" and isinstance(value, dict):
                return {"form": value}
            if kind.startswith("multipart/") and isinstance(value, dict):
                return {"files": {name: (None, str(one)) for name, one in value.items()}}
            if kind.startswith("text/"):
                return {"data": str(value)}
        return {}

    def _example(self, holder: dict[str, Any]) -> Any:
        """The example of a parameter or a body, else one made of its schema."""
        if "example" in holder:
            return clean(holder["example"])
        for example in (holder.get("examples") or {}).values():
            return clean(self._at(example).get("value"))
        return self._sample(holder.get("schema") or {})

    def _sample(self, schema: Any, within: tuple[str, ...] = ()) -> Any:
        """A value that follows the schema; None where the schema contains itself."""
        if isinstance(schema, dict) and (reference := schema.get("$ref")):
            if reference in within or len(within) == DEEPEST:
                return None
            within = (*within, reference)
        schema = self._at(schema)
        for key in ("example", "default", "const"):
            if key in schema:
                return clean(schema[key])
        for key in ("examples", "enum"):
            if schema.get(key):
                return clean(schema[key][0])
        if schema.get("allOf"):
            parts = [self._sample(part, within) for part in schema["allOf"]]
            return {k: v for part in parts if isinstance(part, dict) for k, v in part.items()}
        for key in ("oneOf", "anyOf"):
            if schema.get(key):
                return self._sample(schema[key][0], within)
        kind = schema.get("type") or ("object" if "properties" in schema else "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            fields = schema.get("properties") or {}
            wanted = [k for k in schema.get("required") or fields if k in fields]
            values = {clean(k): self._sample(fields[k], within) for k in wanted}
            return {k: value for k, value in values.items() if value is not None}
        if kind == "array":
            item = self._sample(schema.get("items") or {}, within)
            return [] if item is None else [item]
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        return kind == "boolean" or _text(schema)

    def _authorize(self, call: Call, security: list[dict[str, Any]]) -> None:
        schemes = (self._document.get("components") or {}).get("securitySchemes") or {}
        for name in security[0] if security else ():
            scheme = self._at(schemes.get(name) or {})
            kind, place = scheme.get("type"), scheme.get("in")
            if kind == "apiKey":
                constant = self._secret("API_KEY")
                if place == "query":
                    call.params = {**(call.params or {}), clean(scheme["name"]): constant}
                elif place == "header":
                    call.headers[clean(scheme["name"])] = constant
            elif kind == "http" and scheme.get("scheme", "").lower() == "basic":
                call.body["auth"] = (self._secret("API_USER"), self._secret("API_PASSWORD"))
            elif kind in ("http", "oauth2", "openIdConnect"):
                call.headers["Authorization"] = f"Bearer {self._secret('API_TOKEN')}"

    def _secret(self, name: str) -> str:
        self.secrets[name] = "none yet"
        return marked(name)

    def _at(self, value: Any) -> dict[str, Any]:
        """What a reference points to, within the document."""
        for _ in range(DEEPEST):
            if not isinstance(value, dict):
                return {}
            if "$ref" not in value:
                return value
            place: Any = self._document
            for key in str(value["$ref"]).removeprefix("#/").split("/"):
                plain = key.replace("~1", "/").replace("~0", "~")
                place = place.get(plain) if isinstance(place, dict) else None
            value = place
        return {}


def _has_example(parameter: dict[str, Any]) -> bool:
    return "example" in parameter or bool(parameter.get("examples"))


def _text(schema: dict[str, Any]) -> str:
    known = _FORMATS.get(schema.get("format", ""), "text")
    shortest = min(schema.get("minLength") or 0, 1_000)
    return known.ljust(shortest, "x")
