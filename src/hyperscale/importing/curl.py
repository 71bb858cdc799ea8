"""A list of curl commands, as a shell runs them or a browser copies them: each becomes a step."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from hyperscale.errors import BadInput
from hyperscale.importing.draft import Call, Code, Draft, Step, unmarked
from hyperscale.importing.names import call_name, unused
from hyperscale.importing.python_text import quoted
from hyperscale.importing.requests import hide_secrets, made_call, origin_of

# With a value that a load test has no use for: files to write, time limits, transport.
_WITH_VALUE = {
    *("-o", "--output", "-w", "--write-out", "-m", "--max-time", "--connect-timeout", "--retry"),
    *(
        "-c",
        "--cookie-jar",
        "-x",
        "--proxy",
        "--cacert",
        "--cert",
        "--key",
        "-E",
        "--resolve",
        "-D",
    ),
    *("--dump-header", "-r", "--range", "-T", "--upload-file", "--max-redirs", "--limit-rate"),
}
_DATA = {
    "-d",
    "--data",
    "--data-raw",
    "--data-ascii",
    "--data-binary",
    "--data-urlencode",
    "--json",
}
_LONG = {
    "-X": "--request", "-H": "--header", "-u": "--user", "-A": "--user-agent", "-e": "--referer",
    "-b": "--cookie", "-G": "--get", "-I": "--head", "-F": "--form",
}  # fmt: skip
_TAKES = {*_WITH_VALUE, *_DATA, "--request", "--header", "--user", "--user-agent", "--referer"}
_TAKES |= {"--cookie", "--form", "--form-string", "--url", "--oauth2-bearer"}
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)


@dataclass
class _Command:
    urls: list[str] = field(default_factory=list)
    method: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    file: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    user: str = ""
    in_query: bool = False


def read_curl(text: str, url: str) -> Draft:
    commands = [_parsed(words) for words in _commands(text)]
    named = [
        (command, one if "://" in one else f"http://{one}")
        for command in commands
        for one in command.urls
    ]
    if not named:
        return Draft("", "", [])
    origin = origin_of(named[0][1])
    steps: list[Step] = []
    for command, address in named:
        call = _call(command, address, origin)
        name = call_name(call.method, urlsplit(call.url).path)
        steps.append(Step(unused(name, [step.name for step in steps]), [call]))
    count = f"{len(steps)} curl command{'' if len(steps) == 1 else 's'}"
    draft = Draft(f"A user's journey, made of {count}.", url or origin, steps)
    hide_secrets(draft)
    return draft


def _commands(text: str) -> list[list[str]]:
    """The words of each command. What stands around them in a script is left out."""
    text = (
        text.replace("\\\r\n", " ").replace("\\\n", " ").replace("^\r\n", " ").replace("^\n", " ")
    )
    text = _ANSI.sub(lambda found: shlex.quote(_unescaped(found[1])), text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    found: list[list[str]] = []
    words: list[str] | None = None
    try:
        for word in lexer:
            if set(word) <= set(";&|\n"):
                words = None
            elif words is None and word.rpartition("/")[2] in ("curl", "curl.exe"):
                words = []
                found.append(words)
            elif words is not None:
                words.append(word)
    except ValueError as error:
        raise BadInput(f"the curl commands cannot be read: {error}") from error
    return found


def _unescaped(text: str) -> str:
    """As a shell reads $'...', which browsers write where a body has quotes."""
    simple = {"n": "\n", "t": "\t", "r": "\r"}
    letters = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)

    def plain(found: re.Match[str]) -> str:
        escape = found[1]
        coded = escape[0] in "ux" and len(escape) > 1
        return chr(int(escape[1:], 16)) if coded else simple.get(escape, escape)

    return letters.sub(plain, text)


def _parsed(words: list[str]) -> _Command:
    command = _Command()
    rest = iter(words)
    for word in rest:
        option, value = word, ""
        if word.startswith("--") and "=" in word and word.partition("=")[0] in _TAKES:
            option, _, value = word.partition("=")
        elif re.match(r"-[A-Za-z].", word) and not word.startswith("--"):
            short = word[:2]
            if _LONG.get(short, short) in _TAKES:  # -XPOST
                option, value = short, word[2:]
            else:  # -sSL and the like; the last of them may take a value
                command.in_query |= "G" in word
                command.method = "HEAD" if "I" in word else command.method
                option = f"-{word[-1]}"
        option = _LONG.get(option, option)
        if option in _TAKES and not value:
            value = next(rest, "")
        _apply(command, option, value)
    return command


def _apply(command: _Command, option: str, value: str) -> None:
    if option == "--request":
        command.method = value
    elif option == "--header":
        name, colon, content = value.partition(":")
        if colon and content.strip():
            command.headers.append((name.strip(), content.strip()))
    elif option == "--user":
        command.user = value
    elif option == "--oauth2-bearer":
        command.headers.append(("Authorization", f"Bearer {value}"))
    elif option in ("--form", "--form-string"):
        name, _, content = value.partition("=")
        command.fields.append((name, content))
    elif option in _DATA:
        if option == "--json":
            command.headers.append(("Content-Type", "application/json"))
        if value.startswith("@") and option not in ("--data-raw", "--data-urlencode"):
            command.file = value[1:]
        else:
            command.data.append(_encoded(value) if option == "--data-urlencode" else value)
    elif option == "--get":
        command.in_query = True
    elif option == "--head":
        command.method = "HEAD"
    elif option == "--url" or not option.startswith("-"):
        command.urls.append(value or option)


def _encoded(value: str) -> str:
    name, equals, content = value.partition("=")
    return f"{name}{equals}{quote(content)}" if equals else quote(name)


def _call(command: _Command, url: str, origin: str) -> Call:
    body = "&".join(command.data)
    if command.in_query and body:
        url += f"{'&' if '?' in url else '?'}{body}"
        body = ""
    sends = body or command.file or command.fields
    headers = command.headers
    if body and not any(name.lower() == "content-type" for name, _ in headers):
        kind = "json" if body.lstrip().startswith(("{", "[")) else "x-www-form-urlencoded"
        headers = [*headers, ("Content-Type", f"application/{kind}")]
    method = command.method or ("POST" if sends else "GET")
    call = made_call(method, url, headers, body, origin)
    if command.file:
        call.body = {"data": _file(command.file)}
    if command.fields:
        call.headers = {k: v for k, v in call.headers.items() if k.lower() != "content-type"}
        call.body = {"files": {name: _part(text) for name, text in command.fields}}
    if command.user:
        name, _, password = command.user.partition(":")
        call.body["auth"] = (name, password)
    return call


def _part(text: str) -> Any:
    """A part of a form: a file, or a text."""
    is_file = text.startswith(("@", "<"))
    return _file(text[1:].partition(";")[0]) if is_file else (None, unmarked(text))


def _file(path: str) -> Code:
    return Code(f"File({quoted(unmarked(path))})")
