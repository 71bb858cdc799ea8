"""Coverage-guided fuzzing of the wire's decoders, where atheris is installed.

    python -m tests.fuzz.fuzz_wire -max_total_time=60 corpus/

Everything runs through the same door as the property tests; a crash is any exception that is not
a typed refusal.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["hyperscale.wire"]):
    from tests.fuzz.wire_bytes import feed_all


def main() -> None:
    atheris.Setup(sys.argv, feed_all)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
