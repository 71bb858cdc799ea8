"""What authors' code may see of a worker's environment: how to speak, and where programs are.

A test gets its own variables with the submission (`-e NAME=VALUE`). Whatever else stands in the
environment of a worker may be a key, a token or a path to one.
"""

from __future__ import annotations

import site
from collections.abc import Mapping
from typing import Final

PASSED_ON: Final = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
        # The way out of the machine's network, which the load takes as well.
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        # Where modules are, and how they are read.
        *("PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONUSERBASE", "PYTHONNOUSERSITE"),
        *("PYTHONUTF8", "PYTHONIOENCODING", "PYTHONTZPATH", "PYTHONDONTWRITEBYTECODE"),
    }
)
PREFIX: Final = "LC_"


def environment_of(environ: Mapping[str, str], home: str) -> dict[str, str]:
    """For a generator that lives in the directory `home`."""
    passed = {
        name: value
        for name, value in environ.items()
        if name in PASSED_ON or name.startswith(PREFIX)
    }
    if site.ENABLE_USER_SITE:  # Python would look for these packages in the new home
        passed.setdefault("PYTHONUSERBASE", site.getuserbase())
    return {**passed, "HOME": home, "TMPDIR": home}
