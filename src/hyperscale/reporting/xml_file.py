"""Results as XML: the JSON of docs/results.md, element by element, without the histograms.

An object is an element with an element for each field; a list is an element with an `item` for
each entry. Names that XML does not allow stand in `name` of an `entry`.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml

import msgspec

from hyperscale.metrics.results import Results
from hyperscale.reporting.junit_file import NOT_XML

_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_LEFT_OUT = frozenset({"buckets", "counts"})


def results_xml(results: Results) -> bytes:
    root = Xml.Element("results")
    _fill(root, msgspec.to_builtins(results))
    Xml.indent(root)
    made: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _fill(element: Xml.Element, value: object) -> None:
    if isinstance(value, dict):
        for name, one in value.items():
            if name in _LEFT_OUT and isinstance(one, list):
                continue
            if _NAME.fullmatch(name):
                _fill(Xml.SubElement(element, name), one)
            else:
                _fill(Xml.SubElement(element, "entry", name=NOT_XML.sub("\ufffd", name)), one)
    elif isinstance(value, list):
        for one in value:
            _fill(Xml.SubElement(element, "item"), one)
    elif value is not None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        element.text = NOT_XML.sub("\ufffd", text)
