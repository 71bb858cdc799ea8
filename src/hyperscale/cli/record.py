"""`hyperscale record`: a test file made of what somebody does in a browser."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from hyperscale.cli import streams
from hyperscale.errors import BadInput, RunFailed

LOOK_MS = 200


def record(
    url: Annotated[str, typer.Argument(metavar="URL", help="the page to begin at")],
    name: Annotated[
        str, typer.Argument(metavar="FILE", help="where to write the test (HOST.py)")
    ] = "",
    har: Annotated[
        str, typer.Option("--har", metavar="FILE", help="keep the recording as well")
    ] = "",
    assets: Annotated[bool, typer.Option("--assets", help="keep scripts, pictures")] = False,
    force: Annotated[
        bool, typer.Option("-f", "--force", help="replace the file if it exists")
    ] = False,
) -> int:
    """Open Chromium, and write a test of what was done in it when it is closed."""
    from hyperscale.cli.new import write_test
    from hyperscale.importing import imported

    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is no URL of a page", f"hyperscale record https://{url}")
    file = Path(name or _default_name(url))
    if file.suffix != ".py":
        raise BadInput(f"a test file ends in .py, and {str(file)!r} does not", f"{file}.py")
    if file.exists() and not force:
        raise BadInput(f"{file} exists already", "give another name, or --force")
    with tempfile.TemporaryDirectory(prefix="hyperscale-record-") as folder:
        recording = Path(har or Path(folder, f"{file.stem}.har"))
        streams.note("recording; close the browser to end it")
        capture(url, recording)
        with streams.patience("reading the recording"):
            made = imported(recording, file, "", assets)
    write_test(file, made.source, made.notes, force)
    streams.say(f"wrote {file}; try: hyperscale run {file} --once")
    return 0


def _default_name(url: str) -> str:
    from hyperscale.cli.new import default_name

    return default_name(urlsplit(url).hostname or "test")


def until_closed(context: Any) -> None:
    """Until no page is left; Ctrl-C ends it too, and what was recorded is kept."""
    try:
        while context.pages:
            context.pages[0].wait_for_timeout(LOOK_MS)
    except KeyboardInterrupt:
        return
    except Exception as error:
        if "closed" not in str(error):
            raise


def capture(
    url: str, har: Path, act: Callable[[Any], None] = until_closed, *, shown: bool = True
) -> None:
    """Keep as a HAR what the pages of a browser ask for while somebody acts."""
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError as error:
        raise BadInput(
            "recording needs Playwright, which is not installed",
            "pip install 'hyperscale-loadtest[browser]' && playwright install chromium",
        ) from error
    with playwright.sync_playwright() as started:
        browser = _open(started.chromium, shown)
        context = browser.new_context(record_har_path=har, no_viewport=shown)
        try:
            page = context.new_page()
            page.goto(url)
            act(context)
        except playwright.Error as error:
            raise RunFailed(f"{url} cannot be opened: {_first_line(error)}") from error
        finally:
            context.close()
            browser.close()
            if har.exists():
                har.chmod(0o600)  # it holds what was typed


def _open(chromium: Any, shown: bool) -> Any:
    """Playwright's own Chromium, or that of the system. As root it has no sandbox."""
    import os

    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    found = shutil.which("chromium") or shutil.which("google-chrome")
    tried = []
    for path in dict.fromkeys((None, found)):
        try:
            return chromium.launch(executable_path=path, headless=not shown, args=args)
        except Exception as error:  # noqa: BLE001 - whatever it says, the other may work
            tried.append(_first_line(error))
    raise RunFailed(
        f"no Chromium can be opened: {tried[-1]}",
        "playwright install chromium; it needs a display as well",
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
