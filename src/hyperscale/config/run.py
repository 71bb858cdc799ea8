"""The settings of a run. `max_vus` is `--max-vus` on the command line, `HYPERSCALE_MAX_VUS` in the
environment and `max-vus` in the `[run]` table of `hyperscale.toml`. Strongest first: flag,
environment, test file, config file, default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from hyperscale.config.sections import RUN, Reading, Section, Sources
from hyperscale.config.values import Kind, Reader, choice, pairs, switch, text, texts, whole

if TYPE_CHECKING:
    from hyperscale.cluster.jobs.records import LostLoad
    from hyperscale.nodes.protocol.jobs import Policy


@dataclass(frozen=True, kw_only=True)
class Settings:
    """None means "not said here": the next weaker source decides."""

    # the load: flags and environment override the test file, the config file fills in behind it
    vus: int | None = None
    vus_each: int | None = None
    duration: str | None = None
    iterations: int | None = None
    stage: list[str] | None = None
    rate: str | None = None
    max_vus: int | None = None
    rps: str | None = None
    host: str | None = None
    insecure_skip_tls_verify: bool | None = None
    threshold: list[str] | None = None
    tag: dict[str, str] | None = None
    # how it is run
    file: str | None = None
    workers: int | None = None
    timeout: str | None = None
    seed: int | None = None
    env: dict[str, str] | None = None
    env_file: str | None = None
    secret: list[str] | None = None
    no_thresholds: bool | None = None
    exit_code_on_error: int | None = None
    once: bool | None = None
    # on a cluster, instead of on this machine
    cluster: list[str] | None = None
    certs: str | None = None
    detach: bool | None = None
    lost_load: LostLoad | None = None
    dc: list[str] | None = None
    dc_count: int | None = None
    dc_policy: Policy | None = None
    # what is shown and written
    ui: str | None = None
    web: bool | None = None
    web_bind: str | None = None
    web_token: str | None = None
    headless: bool | None = None
    quiet: bool | None = None
    verbose: bool | None = None
    no_color: bool | None = None
    http_debug: str | None = None
    summary_trend_stats: str | None = None
    debug: bool | None = None
    out: list[str] | None = None
    html: str | None = None
    json: str | None = None
    csv: str | None = None
    junit: str | None = None
    markdown: str | None = None
    reporter_required: bool | None = None

    def over(self, weaker: Settings) -> Settings:
        """These settings where they say something, `weaker` where they do not.

        Tables (tags, environment) are joined key by key; lists are replaced as a whole.
        """
        merged: dict[str, Any] = {}
        for name in NAMES:
            mine, theirs = getattr(self, name), getattr(weaker, name)
            if isinstance(mine, dict) and isinstance(theirs, dict):
                merged[name] = theirs | mine
            else:
                merged[name] = theirs if mine is None else mine
        return Settings(**merged)


NAMES = tuple(field.name for field in fields(Settings))
SWITCHES = tuple(field.name for field in fields(Settings) if "bool" in str(field.type))


_READERS: dict[str, Reader] = {
    "vus": whole(1),
    "vus_each": whole(1),
    "iterations": whole(1),
    "max_vus": whole(1),
    "workers": whole(-1),
    "seed": whole(0),
    "exit_code_on_error": whole(0, 255),
    "stage": texts(None),
    "out": texts(None),
    "threshold": texts(";"),  # an expression may hold blanks and commas: "p(95) < 500 for 10s"
    "tag": pairs,
    "env": pairs,
    "secret": texts(None),
    "cluster": texts(None),
    "dc": texts(None),
    "dc_count": whole(1),
    "dc_policy": choice("strict", "prefer", "any"),
    "lost_load": choice("squeeze", "move", "drop"),
    "ui": choice("full", "ci", "none"),
    "http_debug": choice("headers", "full"),
    **dict.fromkeys(SWITCHES, switch),
}
_PRIVATE = frozenset({"env", "web_token"})
SECTION = Section(
    RUN,
    {name: Kind(_READERS.get(name, text), private=name in _PRIVATE) for name in NAMES},
    flags=NAMES,
    secret=_PRIVATE,
)


def said_by(flags: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """By the command line and the environment, which are stronger than the test file."""
    return Settings(**Reading(Sources(flags, environ), [SECTION]).said(RUN))


def filled_by(sources: Sources) -> Settings:
    """By the config file, which fills in behind the test file."""
    document, file = sources.document, sources.file
    return Settings(**Reading(Sources(document=document, file=file), [SECTION]).said(RUN))
