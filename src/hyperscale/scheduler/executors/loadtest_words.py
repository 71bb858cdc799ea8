"""What a `loadtest` job may add to `hyperscale run`: how much load, how it is judged, tags and
variables. Nothing that writes or reads files of its choice, and nothing that moves the run to
another place: whoever may submit a job shall not become the user whom the worker runs as.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hyperscale.scheduler.model.errors import InvalidJob

ENV_FILE: Final = "--env-file"
VALUED: Final = frozenset(
    {
        *("-u", "--vus", "--users", "--vus-each", "-d", "--duration", "--run-time"),
        *("-i", "--iterations", "-s", "--stage", "--rate", "--max-vus", "--rps", "--host"),
        *("--threshold", "--exit-code-on-error", "--summary-trend-stats", "--timeout", "--seed"),
        *("--tag", "-w", "--workers", "--processes", "-e", "--env", "--secret", ENV_FILE),
    }
)
"""Each takes the word behind it."""
PLAIN: Final = frozenset(
    {"--insecure-skip-tls-verify", "--no-thresholds", "-q", "--quiet", "-v", "--verbose"}
)
_STEERING: Final = re.compile(
    r"(PYTHON|LD_|DYLD_|HYPERSCALE_|SSL|OPENSSL|GLIBC_|GCONV_|MALLOC_|XDG_).*"
    r"|PATH|HOME|TMPDIR|TEMP|TMP|BROWSER|ENV|BASH_ENV|IFS|LOCPATH|NLSPATH|HOSTALIASES"
)
"""Variables that choose which code the interpreter, the loader or a library runs, or which files
they write, before the test sees them."""


def file_beneath(directory: Path, name: str) -> Path:
    """The file beneath the directory, symbolic links followed. Raises InvalidJob."""
    try:
        found = (directory / name).resolve(strict=True)
        beneath = found.is_file() and found.is_relative_to(directory.resolve())
    except (OSError, ValueError, RuntimeError):  # a link in a circle is a RuntimeError
        beneath = False
    if not beneath:
        raise InvalidJob(
            f"{name!r} is no file beneath the directory of this worker's tests",
            "its owner names that with --loadtest-dir",
        )
    return found


def checked_words(directory: Path, words: Sequence[str]) -> list[str]:
    """The same words, files made absolute. Raises InvalidJob."""
    return list(_checked(directory, iter(words)))


def _checked(directory: Path, words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word in PLAIN:
            yield word
            continue
        flag, value = _parted(word)
        if flag not in VALUED:
            raise InvalidJob(
                f"'args' in the payload: {flag or word!r} is not for jobs",
                "they choose load, thresholds, tags and variables",
            )
        if value is None and (value := next(words, None)) is None:
            raise InvalidJob(f"'args' in the payload: {flag} has no value")
        if flag in ("-e", "--env") and _STEERING.fullmatch(value.partition("=")[0].strip()):
            raise InvalidJob(f"'args' in the payload: {flag} must not set this variable")
        yield flag
        yield str(file_beneath(directory, value)) if flag == ENV_FILE else value


def _parted(word: str) -> tuple[str, str | None]:
    """Flag and value in one word: `--vus=5`, `-u5`."""
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    return (word[:2], word[2:] or None) if word.startswith("-") else ("", None)
