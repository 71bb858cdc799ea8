"""Values that nobody but the test may read, and text shown without them.

A value is secret because somebody said so (`secret("API_KEY")`, `--secret`, an env file): such a
one is known, and masked wherever it stands, in any form it takes on its way. Or it is secret by
its place: an Authorization header, a cookie, the password in a URL, a field called token. Every
process has its own list of known values, and no request waits for any of this.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from urllib.parse import quote, quote_plus

from hyperscale.errors import BadInput

MASK = "***"
# A shorter value is part of every second word: it is masked by its place only.
CHARACTERS_MIN = 4

_NAMES = r"token|secret|passw|api[-_]?key|access[-_]?key|authorization|credential|cookie"
_SENSITIVE = re.compile(_NAMES, re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(://[^/?#\s:@]*:)(?!\*\*\*)[^/?#\s]*@")
# Also where the JSON is a text within JSON, every quote with a backslash.
_JSON_FIELD = re.compile(
    rf'((?P<inner>\\)?"[\w.-]*(?:{_NAMES})[\w.-]*(?(inner)\\)"\s*:\s*(?(inner)\\)")'
    r'(?!\*\*\*)(?(inner)[^"\\]*|(?:[^"\\]|\\.)*)',
    re.IGNORECASE,
)
_FORM_FIELD = re.compile(
    rf"((?:^|[?&;\s])[\w.-]*(?:{_NAMES})[\w.-]*=)(?!\*\*\*)[^&;\s\"']+", re.IGNORECASE
)
_ATTRIBUTES = frozenset({"Path", "Domain", "Expires", "Max-Age", "SameSite"})  # of cookies
# Flags whose value others should not read; -q and -v may stand before -e in one word.
_FLAG = re.compile(r"-[qv]*e|--env|--token|--password")
_FLAG_WITH_VALUE = re.compile(r"(-[qv]*e|--(?:env|token|password)=)(.+)", re.DOTALL)

_known: dict[str, str] = {}  # value -> the name it is shown by
_patterns: list[tuple[re.Pattern[str], str]] = []


def secret(name: str, default: str | None = None) -> str:
    """The environment variable of that name, which no report, log or trace will show."""
    value = os.environ.get(name, default)
    if value is None:
        raise BadInput(f"the secret {name} is not set", f"-e {name}=... or --secret {name}")
    register(name, value)
    return value


def register(name: str, value: str) -> None:
    """From now on `mask` knows the value and shows the name instead."""
    if value in _known:
        return
    _known[value] = name
    longest_first = sorted(_known.items(), key=lambda one: -len(one[0]))
    _patterns[:] = [
        (_pattern(text), f"{MASK}{shown}{MASK}")
        for text, shown in longest_first
        if len(text.strip()) >= CHARACTERS_MIN
    ]


def is_sensitive(name: str) -> bool:
    """Whether a header, field or variable of that name holds what others should not read."""
    return _SENSITIVE.search(name) is not None


def mask(text: str) -> str:
    """Without known values and passwords in URLs."""
    for pattern, shown in _patterns:
        text = pattern.sub(shown, text)
    return _URL_PASSWORD.sub(rf"\1{MASK}@", text) if "://" in text else text


def mask_excerpt(text: str) -> str:
    """As `mask_body`, for text that was cut somewhere: perhaps in the middle of a value."""
    text = mask_body(text)
    for value in _known:
        for length in range(len(value) - 1, CHARACTERS_MIN - 1, -1):
            if text.endswith(value[:length]):
                return text[:-length] + MASK
    return text


def mask_url(url: str) -> str:
    """Also without the values of parameters such as `token=`."""
    return _FORM_FIELD.sub(rf"\1{MASK}", mask(url))


def mask_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: mask_header(name, value) for name, value in headers.items()}


def mask_header(name: str, value: str) -> str:
    return MASK if is_sensitive(name) else mask_url(value)


def mask_body(text: str, headers: Iterable[tuple[str, str]] = ()) -> str:
    """Also without fields such as `"password":`, and without what sensitive headers of the same
    exchange hold, which some servers repeat."""
    text = mask(text)
    for value in sorted(_credentials(headers), key=len, reverse=True):
        if len(value) >= CHARACTERS_MIN:
            text = text.replace(value, MASK)
    return _FORM_FIELD.sub(rf"\1{MASK}", _JSON_FIELD.sub(rf"\1{MASK}", text))


def mask_args(words: Sequence[str]) -> list[str]:
    """A command line for others to read: variables and tokens without their values."""
    shown: list[str] = []
    flag = ""
    for word in words:
        joined = _FLAG_WITH_VALUE.fullmatch(word)
        if flag:
            shown.append(_valueless(word))
        elif joined is not None:
            shown.append(joined[1] + _valueless(joined[2]))
        else:
            option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
            shown.append(option + equals + mask_url(value))
        flag = word if not flag and _FLAG.fullmatch(word) else ""
    return shown


def _valueless(text: str) -> str:
    name, equals, _ = text.partition("=")
    return f"{name}={MASK}" if equals and name.isidentifier() else MASK


def _credentials(headers: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What sensitive headers hold, and the parts of it that make sense alone."""
    for name, value in headers:
        if not is_sensitive(name):
            continue
        yield value
        if "cookie" in name.lower():
            pairs = (part.partition("=") for part in re.split("[;,]", value))
            yield from (text.strip() for key, _, text in pairs if key.strip() not in _ATTRIBUTES)
        scheme, _, rest = value.partition(" ")
        yield rest
        if scheme.lower() == "basic":
            with suppress(ValueError):
                decoded = base64.b64decode(rest + "===").decode("utf-8", "replace")
                yield decoded.partition(":")[2]


def _pattern(value: str) -> re.Pattern[str]:
    text = value.strip()
    forms = {
        text,
        quote(text),
        quote(text, safe=""),
        quote_plus(text),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
    }
    ways = [re.escape(form) for form in sorted(forms, key=len, reverse=True)]
    ways += [rf"[\w+/-]{{0,3}}{re.escape(form)}[\w+/-]{{0,2}}={{0,2}}" for form in _base64(text)]
    return re.compile("|".join(ways))


def _base64(text: str) -> Iterator[str]:
    """Within anything in base64, "user:password" too: three bytes are four characters, so there
    are three ways to stand, of which only characters that are all the value's own are sure."""
    data = text.encode()
    for before, mixed in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(before) + data).decode()
        own = encoded[mixed : (before + len(data)) * 8 // 6]
        if len(own) > CHARACTERS_MIN:
            yield own
            yield own.translate(str.maketrans("+/", "-_"))
