"""A table with typed columns: text to the left, numbers to the right, sortable by their value.

A cell carries the raw number beside the formatted one, so that 1.20 s sorts after 212 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hyperscale.ui.html.markup import Child, Html, join, tag


@dataclass(frozen=True)
class Cell:
    content: Child
    value: float | str = ""
    kind: str = ""


@dataclass(frozen=True)
class Column:
    name: str
    number: bool = True
    hint: str = ""
    wide: bool = False  # left out on a narrow page
    swatch: str = ""  # class of the colour this column has in a chart beside it


def number(shown: str, value: float, kind: str = "") -> Cell:
    return Cell(shown, value, kind)


def words(content: Child, value: str = "", kind: str = "") -> Cell:
    return Cell(content, value or (content if type(content) is str else ""), kind)


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    sortable: bool = False,
    kind: str = "",
) -> Html:
    """The first cell of a row is its heading. The caption is for those who cannot see the page."""
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", (_heading(column, sortable) for column in columns))),
            tag("tbody", (_row(columns, row) for row in rows)),
            class_=kind or None,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _heading(column: Column, sortable: bool) -> Html:
    name: Child = tag("button", column.name, type="button") if sortable else column.name
    if column.swatch:
        name = join([tag("i", class_=f"dot {column.swatch}"), name])
    return tag(
        "th",
        name,
        scope="col",
        class_=_classes(column) or None,
        title=column.hint or None,
    )


def _row(columns: Sequence[Column], row: Sequence[Cell]) -> Html:
    return tag("tr", (_cell(index, columns[index], cell) for index, cell in enumerate(row)))


def _cell(index: int, column: Column, cell: Cell) -> Html:
    classes = f"{_classes(column)} {cell.kind}".strip()
    value = cell.value if isinstance(cell.value, str) else f"{cell.value:.10g}"
    same = isinstance(cell.content, str) and cell.content == value
    return tag(
        "td" if index else "th",
        cell.content,
        scope=None if index else "row",
        class_=classes or None,
        data_value=None if same else value,
    )


def _classes(column: Column) -> str:
    return " ".join(filter(None, ("number" * column.number, "wide" * column.wide)))
