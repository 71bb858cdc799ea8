"""The flags of `run`, one type each, so that the command itself reads as a list.

Values arrive as text and are read by `hyperscale.config`, which gives flags, environment and
config file the same meaning and the same errors. Further names are those people bring from k6
and Locust.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

LOAD = "Load, over what the test file says"
JUDGE = "Judge"
SHOW = "Show"
WRITE = "Write"
HOW = "How"


def _option(
    panel: str, *names: str, metavar: str | None = None, help: str, hidden: bool = False
) -> Any:
    """A hidden one is named in the help of another, so that the help fits a screen."""
    return typer.Option(
        *names,
        metavar=metavar,
        help=help,
        rich_help_panel=panel,
        hidden=hidden,
        show_default=False,
    )


Text = str | None
Texts = list[str] | None

Vus = Annotated[
    Text,
    _option(
        LOAD,
        *("-u", "--vus", "--users"),
        metavar="N",
        help="virtual users in all; --vus-each N: of each workflow",
    ),
]
VusEach = Annotated[
    Text,
    _option(LOAD, "--vus-each", metavar="N", help="virtual users of each workflow", hidden=True),
]
Duration = Annotated[
    Text,
    _option(LOAD, "-d", "--duration", "--run-time", metavar="TIME", help="30s, 1m30s, 500ms, 90"),
]
Iterations = Annotated[
    Text, _option(LOAD, "-i", "--iterations", metavar="N", help="end after N iterations in all")
]
Stage = Annotated[
    Texts,
    _option(LOAD, "-s", "--stage", metavar="TIME:N", help="ramp to N within TIME; repeatable"),
]
Rate = Annotated[
    Text,
    _option(LOAD, "--rate", metavar="N/s", help="start N iterations a second (--max-vus N users)"),
]
MaxVus = Annotated[
    Text,
    _option(LOAD, "--max-vus", metavar="N", help="most users that --rate may use", hidden=True),
]
Rps = Annotated[Text, _option(LOAD, "--rps", metavar="N", help="at most N requests a second")]
Host = Annotated[
    Text, _option(LOAD, "--host", metavar="URL", help="base of the test file's relative URLs")
]
Insecure = Annotated[
    bool, _option(LOAD, "--insecure-skip-tls-verify", help="accept any certificate")
]

Method = Annotated[
    Text,
    _option(
        LOAD,
        *("-X", "--method"),
        metavar="VERB",
        help="of a URL (GET); likewise -H 'K: V' and --data TEXT",
    ),
]
Header = Annotated[
    Texts,
    _option(LOAD, "-H", "--header", metavar="'K: V'", help="of a URL; repeatable", hidden=True),
]
Data = Annotated[
    Text,
    _option(
        LOAD,
        "--data",
        metavar="TEXT",
        help="body for a URL, or @FILE; makes it a POST",
        hidden=True,
    ),
]

Threshold = Annotated[
    Texts,
    _option(JUDGE, "--threshold", metavar="EXPR", help='"p(95)<500"; repeatable; crossed: exit 99'),
]
NoThresholds = Annotated[bool, _option(JUDGE, "--no-thresholds", help="judge none")]
ExitCodeOnError = Annotated[
    Text, _option(JUDGE, "--exit-code-on-error", metavar="N", help="exit N if a request failed")
]
Tag = Annotated[Texts, _option(WRITE, "--tag", metavar="K=V", help="label the results; repeatable")]

Ui = Annotated[
    Text,
    _option(SHOW, "--ui", metavar="MODE", help="full (on a terminal), ci (else), none; --no-color"),
]
Web = Annotated[
    bool, _option(SHOW, "--web", help="a live page in the browser (--web-bind HOST:PORT)")
]
WebBind = Annotated[
    Text,
    _option(SHOW, "--web-bind", metavar="HOST:PORT", help="(127.0.0.1:8089)", hidden=True),
]
Headless = Annotated[bool, _option(SHOW, "--headless", help="as --ui ci", hidden=True)]
Quiet = Annotated[bool, _option(SHOW, "-q", "--quiet", help="no progress, one line of summary")]
Verbose = Annotated[
    bool, _option(SHOW, "-v", "--verbose", help="explain what is done; --debug: tracebacks too")
]
NoColor = Annotated[bool, _option(SHOW, "--no-color", help="plain text", hidden=True)]
Once = Annotated[
    bool, _option(SHOW, "--once", help="one iteration of one user, every exchange shown")
]
HttpDebug = Annotated[
    Text, _option(SHOW, "--http-debug", metavar="[=full]", help="print exchanges (with bodies)")
]
TrendStats = Annotated[
    Text,
    _option(SHOW, "--summary-trend-stats", metavar="LIST", help='such as "avg,p(95),p(99)"'),
]
Debug = Annotated[bool, _option(SHOW, "--debug", help="show tracebacks of errors")]
QuietDebug = Annotated[
    bool, _option(SHOW, "--debug", help="show tracebacks of errors", hidden=True)
]

Out = Annotated[
    Texts,
    _option(WRITE, "-o", "--out", metavar="FILE", help=".json .csv .xml .html .md, or a URL"),
]
Html = Annotated[
    Text,
    _option(
        WRITE,
        "--html",
        metavar="FILE",
        help="a report; likewise --json --csv --junit --markdown",
    ),
]
Json = Annotated[
    Text,
    _option(
        WRITE,
        "--json",
        "--summary-export",
        metavar="FILE",
        help="results for programs",
        hidden=True,
    ),
]
Csv = Annotated[
    Text, _option(WRITE, "--csv", metavar="FILE", help="a table of the steps", hidden=True)
]
Junit = Annotated[
    Text,
    _option(
        WRITE, "--junit", metavar="FILE", help="thresholds and checks as test cases", hidden=True
    ),
]
Markdown = Annotated[
    Text, _option(WRITE, "--markdown", metavar="FILE", help="for a pull request", hidden=True)
]
ReporterRequired = Annotated[
    bool,
    _option(
        WRITE, "--reporter-required", help="fail when a reporter cannot be reached", hidden=True
    ),
]

Workers = Annotated[
    Text,
    _option(HOW, "-w", "--workers", "--processes", metavar="N", help="generator processes (cores)"),
]
Env = Annotated[
    Texts, _option(HOW, "-e", "--env", metavar="K=V", help="environment of the test; repeatable")
]
Secret = Annotated[
    Texts,
    _option(
        HOW, "--secret", metavar="NAME", help="a variable never shown; likewise --env-file FILE"
    ),
]
EnvFile = Annotated[
    Text,
    _option(
        HOW,
        "--env-file",
        metavar="FILE",
        help="secret variables of the test, K=V a line",
        hidden=True,
    ),
]
Config = Annotated[
    Text,
    _option(
        HOW, "-c", "--config", metavar="FILE", help="(./hyperscale.toml); --show-settings lists all"
    ),
]
Timeout = Annotated[Text, _option(HOW, "--timeout", metavar="TIME", help="give up the whole run")]
ShowSettings = Annotated[
    bool, _option(HOW, "--show-settings", help="list them and who set them; start nothing")
]
QuietShowSettings = Annotated[
    bool,
    _option(HOW, "--show-settings", help="list them and who set them; start nothing", hidden=True),
]
Seed = Annotated[Text, _option(HOW, "--seed", metavar="N", help="repeat the random choices")]
