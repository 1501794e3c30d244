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
- `magebench N`, `vldac N`: the paper's table N (docs/published.yaml) and ours, or why there is none;
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

import yaml

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


NO_MODEL = "needs the model itself, which could not be had here"
NO_PERSON = "no person was recorded: `vlgym play` and `vlgym ui` do it"


def magebench(read: Read, number: str) -> str:
    """A published table of MageBench. Ours are from docs/benchmarks/magebench_rows.json and football_start.md."""
    table = _published("MageBench", number)
    measured = {
        (family, row["planner"], row["policy"]): row
        for family, part in json.loads((DOCS / "benchmarks" / "magebench_rows.json").read_bytes()).items()
        for row in part["rows"]
    }
    places = [tuple(column.lower().split()) for column in table["columns"]]

    def ours(policy: str) -> list[str]:
        rows = [measured.get((*place, policy)) for place in places]
        return ["" if row is None else f"{_round(row['mean'])} ± {_round(row['half_width'])}" for row in rows]

    rows = []
    for name, *cells in table["rows"]:
        line = ours(name.lower())
        reason = "" if any(line) else NO_PERSON if name == "Human" else NO_MODEL
        rows.append([name, "paper", *map(_cell, cells), reason])
        if any(line):
            rows.append([name, "**ours**", *line, ""])
    if any(row[1] == "**ours**" for row in rows):
        rows += [[name, "**ours**", *ours(policy), ""] for name, policy in OURS_ALONE.items()]
        last = table["columns"].index("Football Online")
        for found in _rows(read, "benchmarks/football_start.md"):
            if found["start"] == "published" and found["player"] in ("idle", "random"):
                line = [""] * len(places)
                line[last] = found["score, mean (95 %)"]
                rows.append([f"{found['player'].title()}, the paper's start, 100 situations", "**ours**", *line, ""])
    return _draw(["player", "from", *table["columns"], "why there is none of ours"], rows)


OURS_ALONE = {"Random, plans of 50 actions": "random, 50 actions", "Oracle": "oracle"}


def vldac(read: Read, number: str) -> str:
    """A published table of VL-DAC on OneRoom. Ours are from docs/studies/oneroom.json: mean and standard deviation over
    seeds at the end."""
    from baselines.studies.report import spread

    table = _published("VL-DAC", number)
    runs = _runs("oneroom")
    arms = list(dict.fromkeys(run["arm"] for run in runs))
    empty = [""] * len(table["columns"])

    def ours(arm: str) -> list[str]:
        values = [_success(run, -1) for run in runs if run["arm"] == arm]
        mean, deviation, _ = spread(values)
        return [arm, "**ours**", *empty, f"{_round(mean)} ± {_round(deviation)} ({len(values)} seeds)", ""]

    rows = []
    for name, *cells in table["rows"]:
        own = [arm for arm in arms if arm == name]
        reason = "" if own else "this lambda was not run; the others below were"
        rows += [[name, "paper", *map(_cell, cells), "", reason], *map(ours, own)]
    rows += [ours(arm) for arm in arms if arm not in {row[0] for row in rows}]
    return _draw(["learner", "from", *table["columns"], "tiny model", "why there is none of ours"], rows)


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
    for function in (
        cell,
        least,
        most,
        below,
        updates,
        each,
        differ,
        ends,
        magebench,
        vldac,
        environments,
        families,
        parameters,
    )
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


def _published(paper: str, number: str) -> dict[str, Any]:
    tables = yaml.safe_load((DOCS / "published.yaml").read_text(encoding="utf-8"))["tables"]
    (table,) = [each for each in tables if re.fullmatch(rf"{paper}, arXiv [\d.]+, table {number}", each["source"])]
    return table


def _draw(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else _round(value)


def _round(value: float) -> str:
    return str(Decimal(str(round(value, 9))).quantize(Decimal("0.01"), ROUND_HALF_UP))


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
