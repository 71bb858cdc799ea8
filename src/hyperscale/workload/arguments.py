"""Arguments that are encoded once, before the clock starts, and reused for every request.

A step declares them as typed defaults (`url: URL = "https://..."`). Each holds the author's value,
refuses a bad one at once, and encodes itself on first use; what needs the network (addresses of a
URL) is put in `optimized` by the client of the protocol, under that protocol's name, so one URL can
serve several. Only the author's value travels between processes.
"""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import quote, urlencode

import msgspec

from hyperscale.errors import BadInput
from hyperscale.workload.files import locate

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LINE_BREAK = re.compile(r"[\r\n\0]").search
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORBIDDEN_IN_COOKIE = re.compile(r"[\x00-\x1f\x7f;]")


class OptimizedArgument:
    """Base: `value` is what the author wrote, `optimized` what clients made of it."""

    __slots__ = ("__weakref__", "optimized", "value")

    accepts: ClassVar[str]

    def __init__(self, value: Any) -> None:
        self.value = self.checked(value)
        self.optimized: dict[str, Any] = {}

    @classmethod
    def of(cls, value: Any) -> Self:
        """The argument for a plain value; an argument stays as it is."""
        return value if isinstance(value, cls) else cls(value)

    @classmethod
    def checked(cls, value: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def refuse(cls, value: Any) -> BadInput:
        return BadInput(f"{cls.__name__} takes {cls.accepts}, not {value!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[Any]]:
        return type(self), (self.value,)


class URL(OptimizedArgument):
    __slots__ = ()
    accepts = "a non-empty string without control characters"

    @classmethod
    def checked(cls, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or _CONTROL.search(value):
            raise cls.refuse(value)
        return value.strip()

    def __str__(self) -> str:
        return str(self.value)


class Headers(OptimizedArgument):
    """Encoded as `Name: value` lines; None as a value means: do not send this header."""

    __slots__ = ()
    accepts = "a dict of header names and values"

    @classmethod
    def checked(cls, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise cls.refuse(value)
        return dict(value)

    def lines(self) -> tuple[bytes, frozenset[str]]:
        encoded: tuple[bytes, frozenset[str]] | None = self.optimized.get("lines")
        if encoded is None:
            encoded = self.optimized["lines"] = header_lines(self.value)
        return encoded


class Params(OptimizedArgument):
    """Encoded as a query string with its leading `?`, or nothing when there is no parameter."""

    __slots__ = ()
    accepts = "a dict, a list of pairs or a query string"

    @classmethod
    def checked(cls, value: Any) -> Any:
        if isinstance(value, str):
            return value
        return _pairs(cls, value)

    def query(self) -> str:
        encoded: str | None = self.optimized.get("query")
        if encoded is None:
            encoded = self.optimized["query"] = query_string(self.value)
        return encoded


class Cookies(OptimizedArgument):
    """Encoded as `a=1; b=2`."""

    __slots__ = ()
    accepts = "a dict of cookie names and values"

    @classmethod
    def checked(cls, value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise cls.refuse(value)
        cookies = {str(name): str(content) for name, content in value.items()}
        for name, content in cookies.items():
            if not _TOKEN.fullmatch(name) or _FORBIDDEN_IN_COOKIE.search(content):
                raise BadInput(f"cookie {name}={content!r} cannot be sent: illegal characters")
        return cookies

    def pairs(self) -> str:
        return "; ".join(f"{name}={content}" for name, content in self.value.items())


class Auth(OptimizedArgument):
    """`("user", "password")` is Basic, a string a Bearer token; "Scheme rest" is sent as it is."""

    __slots__ = ()
    accepts = "a (user, password) pair or a token"

    @classmethod
    def checked(cls, value: Any) -> str | tuple[str, str]:
        if isinstance(value, str) and value:
            if _CONTROL.search(value):
                raise BadInput("an Auth token cannot contain line breaks or control characters")
            return value
        if isinstance(value, Sequence) and len(value) == 2:
            user, password = value
            if isinstance(user, str) and isinstance(password, str) and ":" not in user:
                return (user, password)
        raise BadInput(f"Auth takes {cls.accepts}, not a {type(value).__name__}")

    def __repr__(self) -> str:
        return "Auth(...)"

    def header(self) -> str:
        if isinstance(self.value, tuple):
            return basic_auth(*self.value)
        return self.value if " " in self.value else f"Bearer {self.value}"


class Data(OptimizedArgument):
    """A request body: bytes and text as they are, everything else as JSON (pydantic models too)."""

    __slots__ = ()
    accepts = "bytes, a string or a value that JSON can hold"

    @classmethod
    def checked(cls, value: Any) -> Any:
        if value is None:
            raise cls.refuse(value)
        return bytes(value) if isinstance(value, bytearray | memoryview) else value

    def body(self) -> tuple[bytes, str]:
        """The bytes and their content type."""
        encoded: tuple[bytes, str] | None = self.optimized.get("body")
        if encoded is None:
            encoded = self.optimized["body"] = encode_body(self.value)
        return encoded


class File(OptimizedArgument):
    """A file read once into memory: a body of its own (`data=`) or a part of `files=`."""

    __slots__ = ()
    accepts = "a path"

    @classmethod
    def checked(cls, value: Any) -> str:
        if not isinstance(value, str | Path) or not str(value):
            raise cls.refuse(value)
        return str(value)

    @property
    def name(self) -> str:
        return Path(self.value).name

    def body(self) -> tuple[bytes, str]:
        encoded: tuple[bytes, str] | None = self.optimized.get("body")
        if encoded is None:
            try:
                content = locate(self.value).read_bytes()
            except OSError as error:
                raise BadInput(f"file {self.value} cannot be read: {error.strerror}") from error
            encoded = self.optimized["body"] = (content, content_type_of(self.value))
        return encoded


def content_type_of(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def basic_auth(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@lru_cache(maxsize=1024)
def header_name(name: str) -> tuple[bytes, str]:
    """A header's name as it starts its line, and in lower case."""
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise BadInput(f"{name!r} is not a header name")
    return f"{name}: ".encode(), name.lower()


def header_value(name: str, value: Any) -> bytes:
    """A header's value; a line break in it would let the value write other headers."""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    if _LINE_BREAK(text):
        raise BadInput(f"the value of header {name} contains a line break: {text!r}")
    try:
        return text.strip(" \t").encode("latin-1")
    except UnicodeEncodeError:
        return text.strip(" \t").encode()


def header_lines(headers: Mapping[str, Any]) -> tuple[bytes, frozenset[str]]:
    """The lines, and the names they set. None as a value means: do not send this header."""
    names = _names(*headers)
    lines = b""
    for name, value in headers.items():
        if value is not None:
            lines += b"%b%b\r\n" % (header_name(name)[0], header_value(name, value))
    return lines, names


@lru_cache(maxsize=1024)
def _names(*names: str) -> frozenset[str]:
    return frozenset(header_name(name)[1] for name in names)


def query_string(params: str | Iterable[tuple[str, Any]]) -> str:
    if isinstance(params, str):
        encoded = quote(params.lstrip("?"), safe="%!$&'()*+,;=:@/?-._~[]")
    else:
        encoded = urlencode(list(_scalars(params)), quote_via=quote)
    return "?" + encoded if encoded else ""


def form_fields(form: Any) -> list[tuple[str, str]]:
    return list(_scalars(_pairs(Params, form)))


def encode_form(form: Any) -> bytes:
    return urlencode(form_fields(form)).encode()


def encode_json(value: Any) -> bytes:
    dump = getattr(value, "model_dump_json", None)
    if dump is not None:
        return str(dump()).encode()
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BadInput(f"the body cannot be written as JSON: {error}") from error


def encode_body(value: Any) -> tuple[bytes, str]:
    if isinstance(value, bytes):
        return value, "application/octet-stream"
    if isinstance(value, str):
        return value.encode(), "text/plain; charset=utf-8"
    return encode_json(value), "application/json"


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a {type(value).__name__} is not a JSON value")
    return dump(mode="json")


def _pairs(cls: type[OptimizedArgument], value: Any) -> list[tuple[str, Any]]:
    items = value.items() if isinstance(value, Mapping) else value
    try:
        return [(str(name), content) for name, content in items]
    except (TypeError, ValueError):
        raise cls.refuse(value) from None


def _scalars(pairs: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    """A list gives its name several times, None drops it, booleans are written as JSON does."""
    for name, content in pairs:
        many = content if isinstance(content, list | tuple | set | frozenset) else (content,)
        for one in many:
            if one is not None:
                yield name, str(one).lower() if isinstance(one, bool) else str(one)
