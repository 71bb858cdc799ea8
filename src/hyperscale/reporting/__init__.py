"""Results out of a run and back in: JSON, CSV and JUnit files.

`check_writable` before the run, `export` after it, `load` to read a JSON result again. The JSON
schema is documented in docs/results.md.
"""

from hyperscale.reporting.formats import FORMATS, Format, check_writable, choose, export
from hyperscale.reporting.load import load

__all__ = ["FORMATS", "Format", "check_writable", "choose", "export", "load"]
