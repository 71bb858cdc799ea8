"""The figures of `http1.py` for which TLS matters, with TLS.

    python benchmarks/https.py                      all of it, about 20 minutes
    python benchmarks/https.py --only get,fresh     some rows
    python benchmarks/https.py --rounds 1 --seconds 1

TLS 1.3, one cipher suite, an ECDSA certificate (P-256) that nobody checks. The target resumes no
session: with a new connection for each request, each is a full handshake for every tool.
"""

from __future__ import annotations

import sys

from http1 import main

PARTS = ["get", "flow", "sizes", "post", "gzip", "fresh", "growth", "memory", "before"]

if __name__ == "__main__":
    sys.exit(main(__doc__, "https", PARTS))
