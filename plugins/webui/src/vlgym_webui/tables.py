"""Element tables: what a page looked like at one moment, as plain data.

A table holds every element of the body that is displayed; a target's annotated elements say how they are matched and
which properties count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Element:
    """One element.

    Attributes:
        node: number that stays with the element while its document lives, so that moments can be compared.
        box: x, y, width, height in pixels, from the top left corner of the document.
        styles: computed styles by name, and `text`, `class`, `placeholder`, `value`, `src`, `type`.
        tag: tag name in lower case.
        descendants: number of elements inside it.
        html: digest of its outer HTML.
        filter_by: `data-filter-by` of a target, else an empty string.
        eval_by: names in `data-evalby` of a target.
    """

    node: int
    box: tuple[float, float, float, float]
    styles: dict[str, str] = field(default_factory=dict)
    tag: str = "div"
    descendants: int = 0
    html: str = ""
    filter_by: str = ""
    eval_by: tuple[str, ...] = ()

    @property
    def area(self) -> float:
        """Width times height in square pixels."""
        return self.box[2] * self.box[3]


Table = tuple[Element, ...]
"""The elements of a page at one moment, in document order."""


def read_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build a table from the rows that `harness.js` reads."""
    return tuple(Element(**{**row, "box": tuple(row["box"]), "eval_by": tuple(row["eval_by"])}) for row in rows)


def select_targets(tables: Sequence[Table], moment: int, compat: bool) -> list[Element]:
    """Return the targets that count at `moment`: all at moment 0, later those that the interaction changed or made.

    Published: an element is unchanged if its outer HTML is, and everything with such an outer HTML is left out; an
    effect of CSS alone (hover) changes nothing. Corrected: an element is unchanged if its outer HTML, box and styles
    are, and only that element is left out.
    """
    targets = [element for element in tables[moment] if element.filter_by]
    if moment == 0:
        return targets
    before = {element.node: element for element in tables[moment - 1]}
    if compat:
        unchanged = {element.html for element in tables[moment] if _same_html(before.get(element.node), element)}
        return [target for target in targets if target.html not in unchanged]
    return [target for target in targets if not _same_look(before.get(target.node), target)]


def _same_html(before: Element | None, after: Element) -> bool:
    return before is not None and before.html == after.html


def _same_look(before: Element | None, after: Element) -> bool:
    return before is not None and (before.html, before.box, before.styles) == (after.html, after.box, after.styles)
