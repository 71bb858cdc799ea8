"""Where a reporter sends results: a few typed fields, from a URL or from the test file.

`postgres://ada:secret@db.example:5432/load` and `PostgresConfig(host="db.example", ...)` say the
same. What is not said comes from environment variables that the tools of a backend read as well.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.reporting.contract import Backend

SECRET = frozenset({
    "password", "token", "api_key", "account_key", "aws_access_key_id", "aws_secret_access_key",
    "aws_session_token", "headers",
})  # fmt: skip
AWS_ENVIRONMENT = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region_name": "AWS_REGION",
}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    scheme: ClassVar[str] = ""
    place_field: ClassVar[str] = "host"  # what stands where a URL has its host
    path_field: ClassVar[str] = ""  # what its path says
    options_field: ClassVar[str] = ""  # takes the parameters that are no fields
    environment: ClassVar[dict[str, str]] = {}  # field -> variable that fills it in
    required: ClassVar[Sequence[str]] = ()

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            try:
                msgspec.convert(getattr(self, field.name), field.type)
            except msgspec.ValidationError as error:
                raise BadInput(f"{type(self).__name__}: {field.name}: {error}") from None
            variable = self.environment.get(field.name, "")
            if not getattr(self, field.name) and os.environ.get(variable):
                msgspec.structs.force_setattr(self, field.name, os.environ[variable])

    @abstractmethod
    def backend(self) -> Backend:
        """One that is not connected yet. Its library need not be there."""

    def check(self) -> None:
        """Raises BadInput for what is missing."""
        for name in self.required:
            if not getattr(self, name):
                variable = self.environment.get(name)
                raise BadInput(
                    f"{self.scheme}:// needs {name}",
                    f"{self.scheme}://...?{name}=..." + (f", or set {variable}" if variable else "")
                    if name not in SECRET or not variable
                    else f"set {variable}",
                )

    def shown(self) -> str:
        """For people: without user, password and options."""
        place = str(getattr(self, self.place_field, "")) if self.place_field else ""
        port = getattr(self, "port", 0)
        path = str(getattr(self, self.path_field)) if self.path_field else ""
        if not self.place_field:
            return f"{self.scheme}://{path}"
        slash = "/" if path and not path.startswith("/") else ""
        return f"{self.scheme}://{place}{f':{port}' if port else ''}{slash}{path}"

    @property
    def trace_share(self) -> float:
        """How many of the runs of steps it wants as spans."""
        return float(getattr(self, "traces", 0.0))

    def secrets(self) -> Iterator[tuple[str, str]]:
        for name in sorted(SECRET & set(self.__struct_fields__)):
            value = getattr(self, name)
            for one in value.values() if isinstance(value, dict) else [value]:
                if one:
                    yield f"{self.scheme} {name}", one

    def masked(self, text: str) -> str:
        """Libraries put into their errors what they were given."""
        for _, value in self.secrets():
            if len(value) > 3:
                text = text.replace(value, "***")
        return text

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Raises BadInput."""
        scheme, _, rest = url.partition("://")
        try:
            parts = urlsplit(f"x://{rest}")
            port = parts.port
        except ValueError:
            raise BadInput(f"{scheme}://: the port is no number from 0 to 65535") from None
        given: dict[str, Any] = {}
        if not cls.place_field:
            place = rest.partition("?")[0]
            return cls._made(scheme, {cls.path_field: place} if place else {}, parts.query)
        place = parts.netloc.rpartition("@")[2]
        if port is not None:
            place = place.rpartition(":")[0]
        values = {
            cls.place_field: unquote(place).strip("[]"),
            "port": "" if port is None else str(port),
            "username": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            cls.path_field: unquote(parts.path.lstrip("/")),
        }
        for name, value in values.items():
            if value and name not in cls.__struct_fields__:
                what = name or "path"
                raise BadInput(f"{scheme}:// has no {what}, and the URL gives one")
            if value:
                given[name] = value
        return cls._made(scheme, given, parts.query)

    @classmethod
    def _made(cls, scheme: str, given: dict[str, Any], query: str) -> Self:
        types = {field.name: field.type for field in msgspec.structs.fields(cls)}
        options: dict[str, str] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            field = name.replace("-", "_")
            if field in types:
                given[field] = value
            elif cls.options_field:
                options[name] = value
            else:
                near = get_close_matches(field, types, 1)
                hint = f"did you mean {near[0]}?" if near else f"it knows {', '.join(types)}"
                raise BadInput(f"{scheme}:// knows no parameter {name}", hint)
        if options:
            given[cls.options_field] = options
        for name, value in given.items():
            try:
                given[name] = msgspec.convert(value, types[name], strict=False)
            except msgspec.ValidationError as error:
                raise BadInput(f"{scheme}://: {name}: {error}") from None
        return cls(**given)
