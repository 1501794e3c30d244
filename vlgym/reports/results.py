"""A result that wants to stand on the board: read from its folder, and refused by a reason in words where it may not.

It may if its run is finished, was played on the test split as registry.yaml describes the environments (card, prompt,
parser, history, no other arguments), and its numbers are what its records give. Without records, they must at least
agree with each other.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import TrajectoryError, UserError, VlgymError
from ..intervals import wilson_interval
from ..making import make
from ..recorded import hash_texts
from ..registry import get_registry
from ..registry_file import read_suites
from ..trajectory import METADATA
from .compute import find_bounds, report_run
from .harmless import find_harm
from .page import write_page
from .records import PICTURES, Part, Run, is_number, read_episodes, read_run
from .showing import choose_episodes, show_episodes
from .writing import PAGE, REPORT

SPLIT = "test"
CLOSE = 1e-9  # relative: the same arithmetic on another machine


@dataclass(frozen=True)
class Value:
    """A number with its interval; the ends are `None` where there is none."""

    mean: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """One part of a result, its pictures shown.

    Attributes:
        env_id: environment id.
        planner: `online` or `global`.
        suite: name of the suite whose items were played; empty for the environment as it is.
        episodes: how many ended.
        success: share won.
        returned: mean return.
        se: its standard error.
        normalized: place between floor and ceiling, where these hold.
        score: mean of the benchmark's own score, where it has one.
        sight: place between blind floor and ceiling (the sight score), where these hold and the blind floor was
            measured.
    """

    env_id: str
    planner: str
    suite: str
    episodes: int
    success: Value
    returned: float
    se: float | None
    normalized: Value | None
    score: float | None
    sight: Value | None = None


@dataclass(frozen=True)
class Result:
    """A result that may stand on the board.

    Attributes:
        name: its folder's name, below the folder of all results.
        policy: who played.
        lines: its parts.
        from_records: whether the numbers were computed from the records; else they are the report's own.
        page: its page, if it has one that cannot do anything.
        page_error: why its page is left out, if so.
    """

    name: str
    policy: str
    lines: tuple[Line, ...]
    from_records: bool
    page: str | None
    page_error: str | None = None


def read_result(folder: Path, name: str) -> Result:
    """Read a result.

    Raises:
        UserError: it may not stand on the board; the message says why.
    """
    run = read_run(folder)
    for part in run.parts.values():
        if reason := find_mismatch(part, run.split):
            raise UserError(f"{part.key} {reason}")
    given = _read_report(folder / REPORT)
    page, page_error, from_records = None, None, (folder / METADATA).is_file()
    if from_records:
        played = read_episodes(run)
        report = report_run(run, played)
        if given is not None and (place := find_other_number(given, json.loads(json.dumps(report)))):
            raise UserError(f"{REPORT} has another {place} than its records give; write it again with `vlgym report`")
        _check_finished(run, report)
        page = write_page(run, report, show_episodes(run, choose_episodes(run, played)))
    elif given is None:
        raise UserError(f"holds neither {METADATA} nor {REPORT}")
    else:
        report = given
        check_report(run, report)
        _check_finished(run, report)
        page, page_error = _read_page(folder / PAGE)
    lines = [_read_line(run.parts[key], report["parts"][key]) for key in run.parts]
    shown = tuple(line for line, part in zip(lines, run.parts.values(), strict=True) if part.pictures == PICTURES[0])
    if not shown:
        raise UserError("has no part with its pictures shown")
    return Result(name, run.policy, shown, from_records, page, page_error)


def find_mismatch(part: Part, split: str) -> str | None:
    """Return in what a part is not the task that registry.yaml describes; `None` where it is."""
    known = get_registry().known.get(part.env_id)
    if known is None:
        return "is not in registry.yaml"
    if split != SPLIT:
        return f"was played on split {split}; the board holds {SPLIT}"
    spec, entry = known["spec"], part.entry
    if part.planner == "online":
        due = {"prompt_hash": known["prompt_hash"], "parser_hash": known["parser_hash"]}
    else:
        try:
            due = _hash_made(part.env_id, part.planner)
        except VlgymError as error:
            return f"cannot be checked under planner {part.planner}: {error}"
    due["spec_hash"] = spec.digest()
    found = {name: entry.get(name) for name in ("prompt_hash", "spec_hash")}
    found["parser_hash"] = f"{entry.get('parser')}-v{entry.get('parser_version')}"
    for name, label in (("spec_hash", "card"), ("prompt_hash", "prompt"), ("parser_hash", "parser")):
        if found[name] != due[name]:
            return f"was played with another {label} ({found[name]}) than registry.yaml's ({due[name]})"
    history = {"turns": spec.history_turns, "images": spec.history_images}
    if entry.get("history") != history:
        return f"was played with history {entry.get('history')}, not {history}"
    given = entry.get("given")
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if name != "parser":  # its hash was compared
            return f"was played with {name}={value!r}, which is not the environment's own"
    if (part.changed or part.items != ({},)) and not name_suite(part):
        return "was played under other arguments than registry.yaml's"
    return None


def name_suite(part: Part) -> str:
    """Return the suite of registry.yaml that has exactly these items of the environment; empty where none has."""
    text = json.dumps([dict(item) for item in part.items], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    for suite, parts in sorted(_suites().items()):
        recorded = parts.get(part.env_id)
        if recorded and recorded["items_hash"] == digest and part.planner in recorded["planners"]:
            return suite
    return ""


def find_other_number(given: Any, computed: Any, place: str = "") -> str | None:
    """Return where two reports differ first, as a dotted name; numbers may differ in the last digits."""
    if isinstance(given, dict) and isinstance(computed, dict):
        names = sorted(given.keys() | computed.keys())
        pairs = [(f"{place}.{name}" if place else name, given.get(name), computed.get(name)) for name in names]
    elif isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        pairs = [(f"{place}.{index}", *pair) for index, pair in enumerate(zip(given, computed, strict=True))]
    elif is_number(given) and is_number(computed):
        return None if math.isclose(given, computed, rel_tol=CLOSE, abs_tol=CLOSE) else place
    else:
        return None if given == computed else place
    return next((found for name, a, b in pairs if (found := find_other_number(a, b, name)) is not None), None)


def check_report(run: Run, report: Mapping[str, Any]) -> None:
    """Check that a report's numbers belong to its run.json, agree with each other and with registry.yaml.

    Raises:
        UserError: they do not; the message names the first.
    """
    try:
        if report["policy"] != run.header["policy"] or report["split"] != run.split:
            raise ValueError("policy or split")
        if report["parts"].keys() != run.parts.keys():
            raise ValueError("parts")
        for key, part in run.parts.items():
            _check_part(part, report["parts"][key])
    except ValueError as error:
        raise UserError(f"{REPORT} is not of this run, or was changed: {error}") from None
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise UserError(f"{REPORT} is not as `vlgym report` writes it ({type(error).__name__}: {error})") from None


def _check_part(part: Part, row: Mapping[str, Any]) -> None:
    episodes = _number(row["episodes"])
    if row["planned"] != part.planned or episodes not in range(part.planned + 1):
        raise ValueError(f"episodes of {part.key}")
    if not episodes:
        return
    rate, low, high, wins, trials = (
        _number(row["success"][name]) for name in ("rate", "low", "high", "wins", "trials")
    )
    ends = wilson_interval(rate * trials, trials)
    agrees = (
        _close(rate, wins / episodes)
        and episodes // part.repeats <= trials <= episodes
        and _close(low, ends[0])
        and _close(high, ends[1])
    )
    if not agrees:
        raise ValueError(f"success of {part.key}")
    bounds, mean = find_bounds(part), _number(row["return"]["mean"])
    for name in ("floor", "ceiling", *(["blind"] if "blind" in row else [])):  # older reports know of no blind floor
        if row.get(name) != bounds.get(name):
            raise ValueError(f"{name} of {part.key} is {row.get(name)}, registry.yaml's is {bounds.get(name)}")
    for score, least, words in (("normalized", "floor", "normalized score"), ("sight_score", "blind", "sight score")):
        if row.get(score) is not None:
            low, high = (bounds[name]["return"] for name in (least, "ceiling"))
            _check_place(part, _value(row[score], "mean"), words, (mean - low) / (high - low))


def _check_place(part: Part, place: Value, words: str, mean: float) -> None:
    if not _close(place.mean, mean):
        raise ValueError(f"{words} of {part.key}")
    if (
        place.low is not None
        and place.high is not None
        and not place.low <= place.mean + CLOSE <= place.high + 2 * CLOSE
    ):
        raise ValueError(f"interval of {part.key}")


def _check_finished(run: Run, report: Mapping[str, Any]) -> None:
    for key, part in run.parts.items():
        if report["parts"][key]["episodes"] != part.planned:
            raise UserError(f"is not finished: {report['parts'][key]['episodes']} of {part.planned} episodes of {key}")


def _read_line(part: Part, row: Mapping[str, Any]) -> Line:
    """Return a part's numbers, each one a finite number."""
    try:
        place, score, sight = row.get("normalized"), row.get("score"), row.get("sight_score")
        return Line(
            part.env_id,
            part.planner,
            name_suite(part) if part.changed or part.items != ({},) else "",
            int(row["episodes"]),
            _value(row["success"], "rate"),
            _number(row["return"]["mean"]),
            None if "se" not in row["return"] else _number(row["return"]["se"]),
            None if place is None else _value(place, "mean"),
            None if score is None else _number(score["mean"]),
            None if sight is None else _value(sight, "mean"),
        )
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UserError(f"{REPORT} is not as `vlgym report` writes it ({type(error).__name__}: {error})") from None


def _value(row: Mapping[str, Any], name: str) -> Value:
    ends = [None if row.get(end) is None else _number(row[end]) for end in ("low", "high")]
    return Value(_number(row[name]), *ends)


def _number(value: Any) -> float:
    if not is_number(value):
        raise ValueError(f"{repr(value)[:40]} is no number")
    return float(value)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE)


def _read_report(path: Path) -> Any:
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise TrajectoryError(f"{REPORT} cannot be read ({type(error).__name__})") from None


def _read_page(path: Path) -> tuple[str | None, str | None]:
    if not path.is_file():
        return None, None
    page = path.read_text(encoding="utf-8", errors="replace")
    harm = find_harm(page)
    return (page, None) if harm is None else (None, f"{PAGE} is none that `vlgym report` wrote: {harm}")


@cache
def _hash_made(env_id: str, planner: str) -> dict[str, str]:
    env = make(env_id, planner=planner)
    try:
        return hash_texts(env)
    finally:
        env.close()


@cache
def _suites() -> dict[str, dict[str, Any]]:
    return read_suites()
