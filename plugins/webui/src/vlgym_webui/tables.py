"""Element tables: what a page looked like at one moment, as plain data. Pure; the browser that fills them is
`browser.py`.

A table holds every element of the body; a target's annotated elements say how they are matched and which properties
count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LEAST_AREA = 0.1
"""Elements of a smaller area (square pixels) are not seen."""


@dataclass(frozen=True)
class Element:
    """One element.

    Attributes:
        node: number that stays with the element while its document lives, so that moments can be compared.
        box: x, y, width, height in pixels, from the top left corner of the document.
        styles: computed styles by name, and `text`, `class`, `placeholder`, `value`, `src`, `type`.
        tag: tag name in lower case.
        displayed: whether it is rendered (no `display: none`, `visibility: hidden` or opacity 0 above it).
        descendants: number of elements inside it.
        html: digest of its outer HTML.
        filter_by: `data-filter-by` of a target, else an empty string.
        eval_by: names in `data-evalby` of a target.
    """

    node: int
    box: tuple[float, float, float, float]
    styles: dict[str, str] = field(default_factory=dict)
    tag: str = "div"
    displayed: bool = True
    descendants: int = 0
    html: str = ""
    filter_by: str = ""
    eval_by: tuple[str, ...] = ()

    @property
    def area(self) -> float:
        """Width times height in square pixels."""
        return self.box[2] * self.box[3]

    @property
    def seen(self) -> bool:
        """Whether the element is displayed and has an area."""
        return self.displayed and self.area > LEAST_AREA

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able data."""
        return {
            "node": self.node, "box": list(self.box), "styles": dict(self.styles), "tag": self.tag,
            "displayed": self.displayed,
            "descendants": self.descendants, "html": self.html, "filter_by": self.filter_by,
            "eval_by": list(self.eval_by),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Element:
        """Build an element from `to_dict`'s form."""
        x, y, width, height = (float(number) for number in data["box"])
        rest = {name: data[name] for name in ("tag", "displayed", "descendants", "html", "filter_by") if name in data}
        return cls(
            int(data["node"]),
            (x, y, width, height),
            dict(data.get("styles", {})),
            eval_by=tuple(data.get("eval_by", ())),
            **rest,
        )


Table = tuple[Element, ...]
"""The elements of a page at one moment, in document order."""


def read_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build a table from a list of `Element.to_dict` mappings."""
    return tuple(Element.from_dict(row) for row in rows)


def list_targets(table: Table) -> list[Element]:
    """Return the annotated elements that are seen."""
    return [element for element in table if element.seen and element.filter_by]


def list_candidates(table: Table) -> list[Element]:
    """Return all elements that are seen."""
    return [element for element in table if element.seen]


def select_targets(tables: Sequence[Table], moment: int, compat: bool) -> list[Element]:
    """Return the targets that count at `moment`: all at moment 0, later those that the interaction changed or made.

    Published: an element is unchanged if its outer HTML is, and everything with such an outer HTML is left out; an
    effect of CSS alone (hover) changes nothing. Corrected: an element is unchanged if its outer HTML, box and styles
    are, and only that element is left out.
    """
    targets = list_targets(tables[moment])
    if moment == 0:
        return targets
    before = {element.node: element for element in tables[moment - 1] if element.seen}
    if compat:
        unchanged = {
            element.html for element in tables[moment] if element.seen and _same_html(before.get(element.node), element)
        }
        return [target for target in targets if target.html not in unchanged]
    return [target for target in targets if not _same_look(before.get(target.node), target)]


def _same_html(before: Element | None, after: Element) -> bool:
    return before is not None and before.html == after.html


def _same_look(before: Element | None, after: Element) -> bool:
    return before is not None and (before.html, before.box, before.styles) == (after.html, after.box, after.styles)
