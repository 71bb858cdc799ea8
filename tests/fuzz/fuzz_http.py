"""Coverage-guided fuzzing of what reads HTTP responses, where atheris is installed.

    python -m tests.fuzz.fuzz_http corpus/ [-max_total_time=600]

It starts from the replies that the unit tests know, put into `corpus/`, and takes a minute unless
told otherwise. Everything runs through the same door as the property tests; a crash is any
exception that is not a typed refusal.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["hyperscale.clients.http"]):
    from tests.fixtures.http_replies import REPLIES
    from tests.fuzz.http_bytes import feed_all


def main() -> None:
    program, corpus, *options = sys.argv
    Path(corpus).mkdir(parents=True, exist_ok=True)
    for name, reply in REPLIES.items():
        if len(reply.data) <= 1000:
            Path(corpus, name).write_bytes(reply.data)
    limits = ["-max_total_time=60", "-max_len=2000"]
    atheris.Setup([program, *limits, *options, corpus], feed_all)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
