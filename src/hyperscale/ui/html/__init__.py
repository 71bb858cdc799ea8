"""The HTML report: one self-contained file from the results of a run, and the way back."""

from hyperscale.ui.html.embed import extract
from hyperscale.ui.html.page import render

__all__ = ["extract", "render"]
