"""The figures that pages quote from results: `docs/generate.py` writes them, and a test finds those without a mark.

`<!-- = NAME ARGUMENT | ... -->any text<!-- . -->`, in Markdown prose or tables. The text between is replaced:

- `cell PAGE | ROW | COLUMN`: a number of a table on a page under docs/ (or of a study, by its name); rows are named by
  their first cell, columns by their header, and `PAGE#heading` takes the tables under one heading only;
- `least PAGE | COLUMN`, `most PAGE | COLUMN`: of all rows; with `| START` of those that begin so;
- `below STUDY, ... | START | ...`: how many runs of arms that begin so ended below their start (`11 of 12`);
- `updates STUDY | ARM`: fewest and most updates of its runs;
- `each STUDY | ARM | before` or `after`: held-out success of each seed;
- `differ STUDY | ARM`: held-out success less that of the study's first arm, with the half-width of its 95 % interval;
- `ends STUDY, ...`: the table of held-out success at the end of several studies;
- `environments`, `environments FAMILY`, `families`: how many registry.yaml holds; `parameters`: of the tiny model.

`cell`, `least` and `most` take `%` as a last argument: whole percent. Other rounding is not offered, because a table's
numbers are rounded already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
MARK = re.compile(r"(<!-- = (\w+) ?([^>]*?) -->)((?:(?!<!-- = ).)*?)(<!-- \. -->)", re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
Read = Callable[[str], str]


def fill_in(text: str, read: Read | None = None) -> str:
    """Replace the text of every mark; `read` gives the text of a page by its name under docs/."""
    reader = read or (lambda name: (DOCS / name).read_text(encoding="utf-8"))

    def replace(match: re.Match[str]) -> str:
        words = [word.strip() for word in match[3].split("|")] if match[3] else []
        if match[2] not in FIGURES:
            raise ValueError(f"{match[1]}: there is no figure {match[2]!r}, only {', '.join(FIGURES)}")
        try:
            return f"{match[1]}{FIGURES[match[2]](reader, *words)}{match[5]}"
        except (LookupError, TypeError, ValueError, OSError) as error:
            raise ValueError(f"{match[1]}: {error}") from None

    filled, count = MARK.subn(replace, text)
    if count != len(re.findall(r"<!-- = \w", text)):
        raise ValueError("a mark has no end, which is written: <!-- . -->")
    return filled


def cell(read: Read, page: str, row: str, column: str, form: str = "") -> str:
    """One number of a table."""
    found = [cells[column] for cells in _rows(read, page) if cells[""] == row and column in cells]
    if len(found) != 1:
        raise LookupError(f"{len(found)} cells in {page}, not one; its rows: {[c[''] for c in _rows(read, page)]}")
    return _show(_first_number(found[0]), form)


def least(read: Read, page: str, column: str, *rest: str) -> str:
    """The smallest number of a column."""
    return _of_column(min, read, page, column, *rest)


def most(read: Read, page: str, column: str, *rest: str) -> str:
    """The largest number of a column."""
    return _of_column(max, read, page, column, *rest)


def below(read: Read, studies: str, *starts: str) -> str:
    """Runs that ended below their start, of how many."""
    runs = [run for study in studies.split(",") for run in _runs(study.strip()) if run["arm"].startswith(starts)]
    return f"{sum(_success(run, -1) < _success(run, 0) for run in runs)} of {len(runs)}"


def updates(read: Read, study: str, arm: str) -> str:
    """Fewest and most updates of an arm's runs."""
    counts = {run["evaluations"][-1]["update"] for run in _runs(study) if run["arm"] == arm}
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)}))


def each(read: Read, study: str, arm: str, when: str) -> str:
    """Held-out success of each seed."""
    runs = sorted((run for run in _runs(study) if run["arm"] == arm), key=lambda run: run["seed"])
    values = [f"{_success(run, {'before': 0, 'after': -1}[when]):.2f}" for run in runs]
    return f"{', '.join(values[:-1])} and {values[-1]}"


def differ(read: Read, study: str, arm: str) -> str:
    """The last column of a study's table: mean difference to the first arm, +- its half-width."""
    (words,) = [words for words in _rows(read, study) if words[""] == arm]
    (text,) = [text for column, text in words.items() if column.startswith("success less")]
    return text


def ends(read: Read, studies: str) -> str:
    """A table of held-out success at the end, a column per study; an arm may bear an addition (`LOOP + KL`)."""
    from baselines.studies.report import spread

    names = [name.strip() for name in studies.split(",")]
    runs = [_runs(name) for name in names]
    base, *others = dict.fromkeys(run["arm"] for run in runs[0])
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    starts = [spread([_success(run, 0) for run in some if run["arm"] == base])[0] for some in runs]
    lines.append(f"| before RL | {' | '.join(f'{start:.2f}' for start in starts)} |")
    for arm in (base, *others):
        same = re.compile(rf"{re.escape(arm)}(, | \+ |$)")
        values = [spread([_success(run, -1) for run in some if same.match(run["arm"])]) for some in runs]
        lines.append(f"| {arm} | {' | '.join(f'{mean:.2f} +-{half:.2f}' for mean, _, half in values)} |")
    return "\n" + "\n".join(lines) + "\n"


def environments(read: Read, family: str = "") -> str:
    """How many environments there are, or a family has."""
    from vlgym.registry_file import read_registry

    return str(sum(family in ("", entry["spec"].family) for entry in read_registry().values()))


def families(read: Read) -> str:
    """How many families there are."""
    from vlgym.registry_file import read_registry

    return str(len({entry["spec"].family for entry in read_registry().values()}))


def parameters(read: Read) -> str:
    """How many parameters the tiny model has."""
    from baselines.models.tiny import PARAMETERS

    return f"{PARAMETERS:,}"


FIGURES: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (cell, least, most, below, updates, each, differ, ends, environments, families, parameters)
}


def _of_column(choose: Callable[..., str], read: Read, page: str, column: str, *rest: str) -> str:
    form = "%" if "%" in rest else ""
    start = next((word for word in rest if word != "%"), "")
    rows = [cells for cells in _rows(read, page) if column in cells and cells[""].startswith(start)]
    numbers = [_first_number(cells[column]) for cells in rows]
    return _show(choose(numbers, key=lambda number: Decimal(number.replace(",", ""))), form)


def _rows(read: Read, page: str) -> Iterator[dict[str, str]]:
    """Every row of every table of a page as header -> cell; the first cell also under the empty name."""
    name, _, heading = page.partition("#")
    name = name if name.endswith(".md") else f"studies/{name}.md"
    header: list[str] = []
    here = not heading
    for line in read(name).splitlines():
        if line.startswith("#") and heading:
            here = re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-") == heading
        if not line.startswith("|"):
            header = []
            continue
        cells = [re.sub(r"[`*]", "", word).strip() for word in line.strip("|").split("|")]
        if not header:
            header = cells
        elif here and not set(line) <= set("|-: "):
            yield {**dict(zip(header, cells, strict=True)), "": cells[0]}


def _runs(study: str) -> list[dict[str, Any]]:
    return json.loads((DOCS / "studies" / f"{study}.json").read_bytes())


def _success(run: dict[str, Any], at: int) -> float:
    return float(run["evaluations"][at]["success"])


def _first_number(text: str) -> str:
    found = NUMBER.search(text)
    if found is None:
        raise ValueError(f"there is no number in {text!r}")
    return found[0]


def _show(number: str, form: str) -> str:
    """A number as the page has it, or in whole percent (half rounds up)."""
    if not form:
        return number
    return f"{(Decimal(number.replace(',', '')) * 100).quantize(Decimal(1), ROUND_HALF_UP)} %"
