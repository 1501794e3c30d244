"""Runs: the first page, and one run with results, learning curves and episodes."""

import json
import re
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..env.arguments import fits
from ..errors import VlgymError, plain_line
from ..play.trajectory import HEADER, METADATA
from ..reports.charts import Curve, draw_curve
from ..reports.compute import compute_report, describe_shares
from ..reports.records import PICTURES, read_run
from ..reports.turns import spread
from ..reports.writing import PAGE, describe_results
from .guarding import LOG, open_inside, render_page
from .index import Index, IndexedEpisode, IndexedRun, get_index, make_key, read_row, split_lines
from .watch import cut_page, filter_episodes, read_choice

EPISODES_OF_RUN = 20  # episodes on a run's page
WAITS_S = 0.5  # for the numbers of a run; later they are shown where they are ready
FRAMES = 6  # pictures of an episode on a run's card
SANDBOX = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
LARGEST_NUMBER = 1e300  # sums of larger numbers are infinite
MOST_CURVES = 80
MAIN = {
    "episode/success": "success",
    "episode/return": "return",
    "rollout/invalid_rate": "replies without an action",
    "loss/kl": "distance from the reference (KL)",
}  # name and title of the curves that are shown first
_RATES = ("episode/success", "rollout/invalid_rate")
_ACROSS = "env_steps"


def make_run_card(run: IndexedRun, episodes: Sequence[IndexedEpisode]) -> dict[str, Any]:
    """Return a run's card.

    `success` is the mean over its parts with pictures; a training run has the `curve` instead.
    `turns` of the episode `shown` are those whose pictures stand for the run.
    """
    header = peek_header(run.path)
    policy, config = (header.get(name) for name in ("policy", "config"))
    policy, config = (each if isinstance(each, dict) else {} for each in (policy, config))
    facts = {
        "policy": policy.get("name", header.get("title", "")), "model": policy.get("model", config.get("model", "")),
        "date": find_date(run, header), "split": header.get("split", ""),
    }  # fmt: skip
    curve = next((each for each in draw_curves(run.path)[0] if each.title == "success"), None)

    # Repeats of one seed count together, as in the report.
    ended = [each for each in episodes if each.over and not each.part.endswith(PICTURES[1:])]
    parts: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in ended:
        parts[each.part or each.env_id][each.number - each.repeat].append(float(each.success))
    shown = max(episodes, key=lambda each: (each.turns > 2, each.success, each.newest), default=None)
    return {
        **{name: plain_line(str(value), 200) for name, value in facts.items()},
        "run": run, "envs": sorted({each.env_id for each in episodes}), "ended": len(ended), "curve": curve,
        "success": None if curve else describe_shares(list(parts.values())), "shown": shown,
        "turns": spread(range(shown.turns), FRAMES) if shown else [],
    }  # fmt: skip


def draw_curves(folder: Path) -> tuple[list[Curve], list[Curve]]:
    """Return the main curves of a run's log, and the others; none without a log."""
    try:
        return _draw_all(folder, (folder / LOG).lstat().st_size)
    except OSError:
        return [], []


@lru_cache(64)
def _draw_all(folder: Path, size: int) -> tuple[list[Curve], list[Curve]]:
    rows = []
    with open_inside(folder, LOG) as file:
        for _, _, text in split_lines(file, 0):
            with suppress(ValueError):
                row = read_row(text)
                rows.append({name: float(row[name]) for name in row if _can_be_drawn(name, row[name])})

    # Environment steps compare runs of different settings; older logs lack them.
    across = _ACROSS if all(_ACROSS in row for row in rows) else "update"
    unit = "environment steps" if across == _ACROSS else "updates"
    drawn: tuple[list[Curve], list[Curve]] = ([], [])
    others = sorted({name for row in rows for name in row} - {*MAIN, _ACROSS, "update"})
    for name in [*MAIN, *others][:MOST_CURVES]:
        points = [(row[across], row[name]) for row in rows if name in row and across in row]
        if points:
            rate = name in _RATES and all(0 <= value <= 1 for _, value in points)
            curve = draw_curve(MAIN.get(name, name), points, unit, (0.0, 1.0) if rate else None)
            drawn[name not in MAIN].append(curve)
    return drawn


def _can_be_drawn(name: str, value: Any) -> bool:
    is_name = re.fullmatch(r"[\w/.-]{1,200}", name) is not None
    return is_name and fits(value, float) and abs(value) <= LARGEST_NUMBER


def peek_header(folder: Path) -> dict[str, Any]:
    """Return what a run.json says; nothing where it cannot be read."""
    try:
        with open_inside(folder, HEADER) as file:
            return read_row(file.read())
    except (OSError, ValueError):
        return {}


def find_date(run: IndexedRun, header: Mapping[str, Any]) -> str:
    """Return when a run was begun, or else when its run.json was written."""
    with suppress(LookupError, TypeError, AttributeError):
        return header["sessions"][0]["started"][:16].replace("T", " ")
    at = (run.path / HEADER).lstat().st_mtime if header else 0
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else ""


def show_runs(request: Request) -> Response:
    """Answer with all runs, the newest first."""
    index = get_index(request)
    of_run: dict[str, list[IndexedEpisode]] = {key: [] for key in index.runs}
    for episode in index.episodes():
        of_run[episode.run].append(episode)
    dates = {key: find_date(run, peek_header(run.path)) for key, run in index.runs.items()}
    newest = sorted(index.runs, key=lambda key: dates[key], reverse=True)
    cut = cut_page(newest, request.query_params)
    cards = [make_run_card(index.runs[key], of_run[key]) for key in cut["rows"]]
    return render_page(request, "runs.html", cards=cards, index=index, **cut)


def show_run(request: Request) -> Response:
    """Answer with a run: results, curves, episodes and run.json."""
    index = get_index(request)
    run = _find_run(request, index)
    episodes = filter_episodes(index.episodes(), read_choice({"run": run.key}))
    results, why_not = find_results(index, run)
    logged, others = draw_curves(run.path)
    return render_page(
        request, "run.html", card=make_run_card(run, episodes), runs=index.runs, why_not=why_not,
        **(results or {"report": None}), logged=logged, others=others, count=len(episodes),
        shown=episodes[:EPISODES_OF_RUN], has_page=(run.path / PAGE).is_file(),
        record=json.dumps(peek_header(run.path), indent=2),
    )  # fmt: skip


def show_report(request: Request) -> Response:
    """Answer with a run's report.html; the browser runs and loads nothing for it."""
    try:
        with open_inside(_find_run(request, get_index(request)).path, PAGE) as file:
            page = file.read()
    except OSError:
        raise HTTPException(404, "This run has no report.html; `vlgym report DIR` writes it.") from None
    headers = {"content-security-policy": SANDBOX}
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


def find_results(index: Index, run: IndexedRun) -> tuple[dict[str, Any] | None, str]:
    """Return what the page shows of an evaluation's report, or a line that says why it cannot."""
    folder = index.folders.get(make_key(run.path))
    if folder is None or folder.problem or peek_header(run.path).get("kind") != "evaluation":
        return None, ""

    # Numbers are computed once for each state of the records; meanwhile the last ones are shown.
    try:
        version = (folder.read, (run.path / METADATA).lstat().st_mtime_ns)
        with _LOCK:
            known, newest, last = _NUMBERS.get(run.path, (None, None, None))
            if newest is None or (known != version and newest.done()):
                newest, last = _compute(run.path), newest
                _NUMBERS[run.path] = version, newest, last
        return newest.result(WAITS_S), ""
    except TimeoutError:
        old = last and not last.exception() and last.result()
        return old or None, "The numbers of this run are being computed; open the page again in a moment."
    except (VlgymError, OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        return None, f"The numbers of this run cannot be computed: {plain_line(str(error))}"


_NUMBERS: dict[Path, tuple[tuple[int, int], Future[Any], Future[Any] | None]] = {}
_LOCK = threading.Lock()


def _compute(folder: Path) -> Future[Any]:
    """Begin to compute what a run's page shows of its report, in a thread that no end waits for."""
    future: Future[Any] = Future()

    def work() -> None:
        try:
            run = read_run(folder)
            future.set_result(describe_results(run, compute_report(run)))
        except Exception as error:
            future.set_exception(error)

    sys.setswitchinterval(2e-4)  # other pages are answered meanwhile
    threading.Thread(target=work, daemon=True).start()
    return future


def _find_run(request: Request, index: Index) -> IndexedRun:
    run = index.runs.get(request.path_params["run"])
    if run is None:
        raise HTTPException(404, "There is no such run in the folders that `vlgym ui` was given.")
    return run


RUN_ROUTES = [Route("/", show_runs), Route("/run/{run}", show_run), Route("/report/{run}", show_report)]
