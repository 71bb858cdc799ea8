"""A payload as clients may see it: what a job does, without the secrets it does it with.

Whoever may look at jobs need not be who may use their tokens. The worker gets it as it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hyperscale.scheduler.addresses import without_user
from hyperscale.workload.secrets import MASK, is_sensitive, mask_args, mask_body, mask_header


def shown(payload: Mapping[str, str]) -> dict[str, str]:
    return {key: _shown(key, value) for key, value in payload.items()}


def _shown(key: str, value: str) -> str:
    if is_sensitive(key):
        return MASK
    if key not in ("args", "argv", "env", "headers"):
        return without_user(mask_body(value))
    try:
        nested = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return MASK
    without = _without_secrets(key, nested)
    return value if without == nested else msgspec.json.encode(without).decode()


def _without_secrets(key: str, nested: Any) -> Any:
    if isinstance(nested, dict) and key == "env":
        return dict.fromkeys(nested, MASK)
    if isinstance(nested, dict) and key == "headers":
        return {name: without_user(mask_header(name, str(text))) for name, text in nested.items()}
    if isinstance(nested, list) and all(isinstance(word, str) for word in nested):
        return [without_user(word) for word in mask_args(nested)]
    return msgspec.json.decode(mask_body(msgspec.json.encode(nested).decode()))
