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
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self, TypeVar

from hyperscale.errors import BadInput
from hyperscale.workload.encoding import encode_body, pairs_of, query_string
from hyperscale.workload.files import locate
from hyperscale.workload.headers import TOKEN, header_lines, header_pairs
from hyperscale.workload.texts import SURROGATE, UNPRINTABLE, as_text, shown

_FORBIDDEN_IN_COOKIE = re.compile(r"[\x00-\x1f\x7f;\ud800-\udfff]")

Read = TypeVar("Read")


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
        return BadInput(f"{cls.__name__} takes {cls.accepts}, not {shown(value)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[Any]]:
        return type(self), (self.value,)


class URL(OptimizedArgument):
    __slots__ = ()
    accepts = "a non-empty string without control characters"

    @classmethod
    def checked(cls, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or UNPRINTABLE.search(value):
            raise cls.refuse(value)
        return value.strip()

    def __str__(self) -> str:
        return str(self.value)


class Headers(OptimizedArgument):
    """Encoded as `Name: value` lines; None as a value means: do not send this header, a list:
    send it several times. A list of pairs may have a name several times."""

    __slots__ = ()
    accepts = "a dict of header names and values or a list of pairs"

    @classmethod
    def checked(cls, value: Any) -> dict[str, Any] | list[tuple[str, Any]]:
        if isinstance(value, Mapping):
            return dict(value)
        return header_pairs(value)

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
        if isinstance(value, str | bytes):
            return value
        return pairs_of("params", value, cls.accepts)

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
        cookies = {}
        for name, given in value.items():
            content = as_text(given)
            if given is None:
                continue
            if content is None:
                raise BadInput(f"cookie {name} is a {type(given).__name__}, not text or a number")
            if not TOKEN.fullmatch(str(name)) or _FORBIDDEN_IN_COOKIE.search(content):
                raise BadInput(f"cookie {name}={shown(content)} cannot be sent: illegal characters")
            cookies[str(name)] = content
        return cookies

    def pairs(self) -> str:
        return "; ".join(f"{name}={content}" for name, content in self.value.items())


class Auth(OptimizedArgument):
    """`("user", "password")` is Basic, a string a Bearer token; "Scheme rest" is sent as it is.

    `("user", "password", "digest")` is `Digest("user", "password")`.
    """

    __slots__ = ()
    accepts = "a (user, password) pair or a token"

    @classmethod
    def of(cls, value: Any) -> Auth:
        if isinstance(value, Auth):
            return value
        if isinstance(value, list | tuple) and len(value) == 3:
            *pair, scheme = value
            if scheme == "digest":
                return Digest(pair)
            if scheme != "basic":
                raise BadInput(f"auth can be 'basic' or 'digest', not {shown(scheme)}")
            return Auth(pair)
        return cls(value)

    @classmethod
    def checked(cls, value: Any) -> str | tuple[str, str]:
        if isinstance(value, str) and value:
            if UNPRINTABLE.search(value):
                raise BadInput("an Auth token cannot contain line breaks or control characters")
            return value
        return cls._pair(value)

    @classmethod
    def _pair(cls, value: Any) -> tuple[str, str]:
        if isinstance(value, list | tuple) and len(value) == 2:
            user, password = value
            if isinstance(user, str) and isinstance(password, str) and ":" not in user:
                if SURROGATE.search(user + password):
                    raise BadInput(f"the user or password of {cls.__name__} is not text")
                return (user, password)
        raise BadInput(f"{cls.__name__} takes {cls.accepts}, not a {type(value).__name__}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def header(self) -> str:
        """What is sent unasked; nothing when the server has to ask first."""
        if isinstance(self.value, tuple):
            return basic_auth(*self.value)
        return self.value if " " in self.value else f"Bearer {self.value}"


class Digest(Auth):
    """Digest authentication: the client answers the server's challenge, and sends nothing before.

    `Digest("user", "password")`, or of a pair, as a typed default has it.
    """

    __slots__ = ()
    accepts = "a user and a password"

    def __init__(self, user: Any, password: Any = None) -> None:
        super().__init__(user if password is None else (user, password))

    @classmethod
    def checked(cls, value: Any) -> tuple[str, str]:
        return cls._pair(value)

    def header(self) -> str:
        return ""


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
    """A file by its path: a body of its own (`data=`) or a part of `files=`."""

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

    @property
    def content_type(self) -> str:
        return content_type_of(self.value)

    def size(self) -> int:
        """In bytes, as it was when first asked for."""
        size: int | None = self.optimized.get("size")
        if size is None:
            size = self.optimized["size"] = self._read(lambda path: path.stat().st_size)
        return size

    def body(self) -> tuple[bytes, str]:
        """What is in it, read once and kept in memory, and its content type."""
        encoded: tuple[bytes, str] | None = self.optimized.get("body")
        if encoded is None:
            encoded = self.optimized["body"] = (self._read(Path.read_bytes), self.content_type)
        return encoded

    def open(self) -> BinaryIO:
        return self._read(lambda path: path.open("rb"))

    def _read(self, function: Callable[[Path], Read]) -> Read:
        try:
            return function(locate(self.value))
        except OSError as error:
            raise BadInput(f"file {self.value} cannot be read: {error.strerror}") from error
        except ValueError as error:  # a path that no file can have
            raise BadInput(f"file {self.value!r} cannot be read: {error}") from error


def headers_without(headers: Any, names: frozenset[str]) -> Any:
    """The headers of a call, in any form it takes, without those of these (lower case) names."""
    if headers is None or not names:
        return headers
    plain = headers.value if isinstance(headers, Headers) else headers
    if isinstance(plain, Mapping):
        return {name: value for name, value in plain.items() if name.lower() not in names}
    return [(name, value) for name, value in header_pairs(plain) if name.lower() not in names]


@lru_cache(maxsize=1024)
def content_type_of(path: str) -> str:
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def basic_auth(user: str | bytes, password: str | bytes) -> str:
    pair = b"%b:%b" % (_utf8(user), _utf8(password))
    return "Basic " + base64.b64encode(pair).decode()


def _utf8(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
