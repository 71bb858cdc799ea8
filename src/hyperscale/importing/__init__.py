"""Test files made of what a team already has: a recording, a description, a log.

A reader for each kind of file makes a `Draft`, which is plain data; `source.py` writes it as the
Python that a person would have written.
"""

from hyperscale.importing.readers import Imported, imported

__all__ = ["Imported", "imported"]
