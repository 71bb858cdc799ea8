"""Selectors and forms on the page that a response carries.

A page is parsed by parsel, which comes with the extra `html`, once and only when a test asks for
something in it. The fields of a form are what a browser would send if nobody touched the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urldefrag, urljoin

from hyperscale.errors import BadInput

_CONTROLS = (
    "*[self::input or self::select or self::textarea or self::button]"
    "[@name!=''][not(@disabled or ancestor::fieldset[@disabled])]"
)
# A control may stand outside of its form and name it: <input form="ID">.
_CONTROLS_OF = f".//{_CONTROLS}[not(@form) or @form=$id] | //{_CONTROLS}[$id!='' and @form=$id]"
_NEVER_SENT = frozenset({"button", "reset", "image", "file"})
_CHOICES = frozenset({"checkbox", "radio", "submit"})


def parse(text: str, content_type: str) -> Any:
    """The page as parsel's Selector; typed as Any, as the extra may not be installed."""
    try:
        parsel = import_module("parsel")
    except ModuleNotFoundError:
        raise BadInput(
            "selectors and forms need parsel; install hyperscale-loadtest[html]"
        ) from None
    is_xml = "xml" in content_type and "html" not in content_type
    return parsel.Selector(text=text, type="xml" if is_xml else "html")


class Form:
    """A form of a page: where it goes, and the fields to send.

    form = page.form("login").fill(user="ada", password="secret")
    await self.client.http.post(form.url, form=form.fields)
    """

    __slots__ = ("_offered", "fields", "method", "url")

    def __init__(self, node: Any, page_url: str, base_url: str) -> None:
        action = node.attrib.get("action", "").strip()
        self.method = "POST" if node.attrib.get("method", "").lower() == "post" else "GET"
        self.url = urldefrag(urljoin(base_url, action) if action else page_url).url
        if self.method == "GET":  # the fields replace the query
            self.url = self.url.partition("?")[0]
        self.fields: dict[str, str | list[str]] = {}
        # Name of a control -> what it sends when it is checked, chosen or pressed.
        self._offered: dict[str, list[str]] = {}
        for control in node.xpath(_CONTROLS_OF, id=node.attrib.get("id", "")):
            self._add(control.root)

    def fill(self, values: Mapping[str, Any] = {}, /, **more: Any) -> Form:
        """Set fields by name. True checks a box or presses a button, False or None leaves the
        field out, a list sends the name several times."""
        for name, value in {**values, **more}.items():
            if name not in self._offered:
                known = ", ".join(self._offered) or "none"
                raise ValueError(f"the form has no field {name!r}; it has {known}")
            if value is None or value is False:
                self.fields.pop(name, None)
            elif value is True:
                if not self._offered[name]:
                    raise ValueError(f"{name!r} is a field to fill in, not one to check or press")
                self.fields[name] = self._offered[name][0]
            elif isinstance(value, list | tuple):
                self.fields[name] = [str(one) for one in value]
            else:
                self.fields[name] = str(value)
        return self

    def _add(self, control: Any) -> None:
        kind = _kind(control)
        if kind in _NEVER_SENT:
            return
        name = control.get("name")
        offered = self._offered.setdefault(name, [])
        if kind in _CHOICES:
            offered.append(control.get("value", "" if kind == "submit" else "on"))
        for value in _sent(control, kind):
            before = self.fields.get(name)
            if before is None:
                self.fields[name] = value
            else:
                self.fields[name] = [*(before if isinstance(before, list) else [before]), value]

    def __repr__(self) -> str:
        return f"<Form {self.method} {self.url} {self.fields}>"


def find_form(page: Any, which: str | None, page_url: str) -> Form:
    """The form called `which` by name or id, or the one that the CSS selector `which` meets, it or
    something in it; the only one of the page for None."""
    every = page.xpath("//form")
    found = every
    if which is not None:
        found = page.xpath("//form[@name=$which or @id=$which]", which=which)
        found = found or page.css(which).xpath("ancestor-or-self::form[1]")
    several = {node.root: node for node in found}
    if len(several) != 1:
        names = ", ".join(each.attrib.get("name") or each.attrib.get("id", "-") for each in every)
        count = f"{len(several)} forms" if several else "no form"
        wanted = "" if which is None else f" {which!r}"
        raise ValueError(f"the page has {count}{wanted}; its forms: {names or 'none'}")
    (node,) = several.values()
    base = page.xpath("string(//base/@href)").get()
    return Form(node, page_url, urljoin(page_url, base))


def _kind(control: Any) -> str:
    if control.tag == "button":
        return str(control.get("type", "submit")).lower()
    return str(control.get("type", "text")).lower() if control.tag == "input" else str(control.tag)


def _sent(control: Any, kind: str) -> Iterator[str]:
    """What an untouched control sends."""
    if kind == "textarea":
        yield "".join(control.itertext()).removeprefix("\n")
    elif kind == "select":
        yield from _selected(control)
    elif kind not in _CHOICES:
        yield control.get("value", "")
    elif control.get("checked") is not None and kind != "submit":
        yield control.get("value", "on")


def _selected(select: Any) -> Iterator[str]:
    options = select.findall(".//option")
    chosen = [option for option in options if option.get("selected") is not None]
    if select.get("multiple") is None:
        usable = (option for option in options if not _is_disabled(option))
        chosen = chosen[-1:] or list(usable)[:1]
    for option in chosen:
        if not _is_disabled(option):
            yield option.get("value", " ".join("".join(option.itertext()).split()))


def _is_disabled(option: Any) -> bool:
    group = option.getparent()
    return option.get("disabled") is not None or (
        group.tag == "optgroup" and group.get("disabled") is not None
    )
