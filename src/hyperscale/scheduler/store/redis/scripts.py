"""Calling the Lua scripts, with every key they use by name."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from redis.exceptions import NoScriptError, RedisError

from hyperscale.scheduler.errors import StoreUnavailable
from hyperscale.scheduler.store.redis.connecting import ANSWER_S, Client
from hyperscale.scheduler.store.redis.copy import Command

_encode = msgspec.msgpack.Encoder().encode


def blob(data: bytes) -> msgspec.Raw:
    """Bytes as a msgpack string: Redis's cmsgpack knows no other, and asks for no UTF-8 in it."""
    if len(data) < 1 << 16:
        return msgspec.Raw(b"\xda" + len(data).to_bytes(2, "big") + data)
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4, "big") + data)


class Script:
    def __init__(self, name: str) -> None:
        self.text = (Path(__file__).parent / f"{name}.lua").read_text()
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


FETCH: Final = Script("fetch")
COMMIT: Final = Script("commit")
CLAIM: Final = Script("claim")
TIME: Final = Script("time")


class Keys:
    """The keys one call uses, each once, and their numbers in KEYS."""

    def __init__(self, prefix: str, names: Iterable[str] = ()) -> None:
        self._prefix = prefix
        self._numbers: dict[str, int] = {}
        for name in names:
            self.number(name)

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def numbered(self, command: Command) -> tuple[Any, ...]:
        """As fetch.lua and commit.lua read it."""
        name, key, *arguments = command
        return (name, self.number(key), *arguments)

    def names(self) -> list[str]:
        return [self._prefix + name for name in self._numbers]


class Scripts:
    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = "{" + prefix + "}:"

    def keys(self, names: Iterable[str] = ()) -> Keys:
        return Keys(self._prefix, names)

    async def fetch(self, commands: Sequence[Command]) -> list[Any]:
        keys = self.keys()
        numbered = [keys.numbered(command) for command in commands]
        answers: list[Any] = await self.call(FETCH, keys, numbered)
        return answers

    async def call(self, script: Script, keys: Keys, argument: object) -> Any:
        """One argument for all: a client spends more on many small ones than on the work."""
        names = keys.names()
        packed = _encode(argument)
        try:
            async with asyncio.timeout(ANSWER_S):
                try:
                    return await self._client.evalsha(script.digest, len(names), *names, packed)
                except NoScriptError:
                    return await self._client.eval(script.text, len(names), *names, packed)
        except (RedisError, OSError) as error:
            why = str(error) or f"{ANSWER_S:g} s passed"
            raise StoreUnavailable(f"redis did not answer: {why}") from error
