"""`hyperscale run`: its flags, and how they join environment and config file into settings.

With `--cluster` the same run takes place there; `hyperscale submit` is another word for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hyperscale.cli import cluster as where
from hyperscale.cli import flags
from hyperscale.cli.variables import recorded_command
from hyperscale.config.run import SECTION, Settings, filled_by, said_by
from hyperscale.config.sections import Reading, Row, flag_name, sources_of
from hyperscale.errors import BadInput

if TYPE_CHECKING:
    from hyperscale.engine.source import ClassSource, FileSource
    from hyperscale.engine.spawning import EarlyChildren


def run(
    ctx: typer.Context,
    test: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE... [NAME...]", help="test files, names pick workflows; or a URL"
        ),
    ] = None,
    vus: flags.Vus = None,
    vus_each: flags.VusEach = None,
    duration: flags.Duration = None,
    iterations: flags.Iterations = None,
    stage: flags.Stage = None,
    rate: flags.Rate = None,
    max_vus: flags.MaxVus = None,
    rps: flags.Rps = None,
    host: flags.Host = None,
    insecure_skip_tls_verify: flags.Insecure = False,
    method: flags.Method = None,
    header: flags.Header = None,
    data: flags.Data = None,
    threshold: flags.Threshold = None,
    no_thresholds: flags.NoThresholds = False,
    exit_code_on_error: flags.ExitCodeOnError = None,
    ui: flags.Ui = None,
    web: flags.Web = False,
    web_bind: flags.WebBind = None,
    headless: flags.Headless = False,
    quiet: flags.Quiet = False,
    verbose: flags.Verbose = False,
    no_color: flags.NoColor = False,
    once: flags.Once = False,
    http_debug: flags.HttpDebug = None,
    summary_trend_stats: flags.TrendStats = None,
    debug: flags.QuietDebug = False,
    out: flags.Out = None,
    html: flags.Html = None,
    json: flags.Json = None,
    csv: flags.Csv = None,
    junit: flags.Junit = None,
    markdown: flags.Markdown = None,
    reporter_required: flags.ReporterRequired = False,
    tag: flags.Tag = None,
    workers: flags.Workers = None,
    env: flags.Env = None,
    env_file: flags.EnvFile = None,
    secret: flags.Secret = None,
    config: flags.Config = None,
    timeout: flags.Timeout = None,
    seed: flags.Seed = None,
    cluster: where.RunOn = None,
    certs: where.QuietCerts = "",
    detach: where.QuietDetach = False,
    lost_load: where.QuietLostLoad = None,
    dc: where.QuietDatacenter = None,
    dc_count: where.QuietDatacenterCount = None,
    dc_policy: where.QuietDatacenterPolicy = None,
    show_settings: flags.QuietShowSettings = False,
) -> int:
    """Run the workflows of test files, or one URL, and judge the results."""
    return launch(ctx.params, early=ctx.obj)


def launch(
    given: Mapping[str, Any],
    *,
    on_cluster: bool = False,
    key: str = "",
    early: EarlyChildren | None = None,
) -> int:
    """Here, or on a cluster when one is named or asked for."""
    sources = sources_of(given, os.environ)
    said, filled = said_by(given, os.environ), filled_by(sources)
    settings = said.over(filled)
    source = None
    if not given["show_settings"] or given["test"] or settings.file:
        source = _source(given, settings, Path(sources.file).parent)
    connection = {**given, "cluster": settings.cluster, "certs": settings.certs}
    on_cluster = on_cluster or bool(settings.cluster)
    if source is None or given["show_settings"]:
        from hyperscale.cli.tables import show_settings

        rows = _rows(Reading(sources, [SECTION]), said, source)
        return show_settings([*rows, *(where.reading_of(connection).rows() if on_cluster else [])])
    command = recorded_command()
    if on_cluster:
        from hyperscale.cli.remote import perform as perform_there

        return perform_there(source, said, filled, command, connection, key)
    if settings.detach:
        raise BadInput(
            "--detach leaves a run to a cluster, and none is named", "add --cluster HOST"
        )
    for name in ("lost_load", "dc", "dc_count", "dc_policy"):
        if given[name]:
            what = "workers" if name == "lost_load" else "datacenters"
            raise BadInput(
                f"{flag_name(name)} is about {what} of a cluster, and none is named",
                "add --cluster HOST",
            )

    from hyperscale.cli.local import perform

    return perform(source, said, filled, command, early)


def _rows(reading: Reading, said: Settings, source: FileSource | ClassSource | None) -> list[Row]:
    """With the settings that the test file decides, which stands between environment and config
    file."""
    rows = reading.rows()
    if source is None:
        return rows
    from hyperscale.cli.overrides import decided_by

    decided = decided_by(source)
    return [
        Row(row.name, decided[name], "test file")
        if (name := row.name.removeprefix("run.")) in decided and getattr(said, name) is None
        else row
        for row in rows
    ]


def _source(given: Mapping[str, Any], settings: Settings, beside: Path) -> FileSource | ClassSource:
    """The test files with the workflows wanted, or the test that a URL makes."""
    from hyperscale.engine.source import ClassSource, FileSource

    words = given["test"] or []
    if words and words[0].startswith(("http://", "https://")):
        from hyperscale.cli.url_test import url_test

        if len(words) > 1:
            raise BadInput(f"{words[1]!r} stands after a URL", "a URL is run alone")
        header = given["header"] or []
        return ClassSource(url_test(words[0], given["method"] or "", header, given["data"]))
    for name in ("method", "header", "data"):
        if given[name]:
            raise BadInput(
                f"{flag_name(name)} is for a URL", "a test file says itself what it sends"
            )
    files, names = _files_and_names(words, settings, beside)
    return FileSource(files[0], names, files[1:])


def _files_and_names(
    words: list[str], settings: Settings, beside: Path
) -> tuple[list[str], list[str]]:
    """The config file may name the test file once for all, as seen from where it lies."""
    files = [word for word in words if _looks_like_a_file(word)]
    if files:
        return files, [word for word in words if word not in files]
    if settings.file is None and words:
        return words[:1], words[1:]
    if settings.file is None:
        raise BadInput(
            "no test file is named",
            "hyperscale run FILE, or write file = FILE in the [run] table of hyperscale.toml; "
            "hyperscale new test.py makes one to start from",
        )
    return [str(beside / settings.file)], words


def _looks_like_a_file(word: str) -> bool:
    return word.endswith(".py") or os.sep in word or Path(word).is_file()
