"""When two submissions are one (S-31 to S-34, T-4).

Inside the window the original is always returned, whatever became of it; the same key with other
content is an error. The content hash is for callers who ask for it and give no key. Instances of
schedules never pass here: their identity is their tick.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from hyperscale.scheduler.model.errors import InvalidJob
from hyperscale.scheduler.model.instants import Instant
from hyperscale.scheduler.model.spec import JobSpec

WINDOW_S_DEFAULT: Final = 3600.0
KEY_LENGTH_MAX: Final = 256
_CONTENT_PREFIX: Final = "content:"


def content_digest(spec: JobSpec, when: Instant | None = None) -> str:
    """Of what the job would do: name (case and outer blanks aside), kind, payload, priority,
    capabilities and due time if one was asked for; not of tags or limits."""
    content = (
        spec.name.strip().lower(),
        spec.kind,
        sorted(spec.payload.items()),
        spec.priority,
        sorted(spec.capabilities),
        when,
    )
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def dedup_key(given: str | None, digest: str) -> str:
    """The key to deduplicate under: of the content, when none is given. An empty key is refused,
    because it would make all unrelated jobs one."""
    if given is None:
        return _CONTENT_PREFIX + digest
    if not given.strip() or len(given) > KEY_LENGTH_MAX:
        raise InvalidJob(f"an idempotency key needs 1 to {KEY_LENGTH_MAX} characters")
    if given.startswith(_CONTENT_PREFIX):
        raise InvalidJob(f"an idempotency key must not start with {_CONTENT_PREFIX!r}")
    return given
