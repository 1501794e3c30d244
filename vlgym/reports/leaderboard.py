"""The board: a static site made of many result folders. A result that may not stand on it is named with the reason.

Reads results and writes pages; it asks nobody and needs no server.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__
from ..durable import write_whole
from ..errors import UserError, VlgymError, check_writable
from ..limited_yaml import read_yaml
from ..trajectory import HEADER
from .board import Ranking, list_tasks, rank_all, rank_families, rank_skills
from .charts import Axis, make_axis, make_bar
from .page import TEMPLATES, render
from .results import Result, Value, read_result

INDEX, MARKER, PAGES = "index.html", "leaderboard.json", "pages"
KIND = "vlgym leaderboard"
PUBLISHED = Path(__file__).with_name("published.yaml")
_PAGE = re.compile(r"[A-Za-z0-9._-]+\.html")


def build_site(folder: Path, out: Path) -> dict[str, Any]:
    """Write the board of all results below `folder` into `out`; return what leaderboard.json holds.

    A result is a folder with a run.json. `results` names those on the board, `refused` the others with the reason.

    Raises:
        UserError: there is no result, or `out` holds something other than a board; nothing is written then.
        NotInstalledError: scipy or jinja2 is missing.
    """
    check_out(out)
    places = find_results(folder, out)
    results, refused = [], []
    for name, place in places:
        try:
            results.append(read_result(place, name))
        except VlgymError as error:
            refused.append({"result": name, "reason": clean(str(error))})
    pages = name_pages([result for result in results if result.page is not None])
    board = {
        "kind": KIND,
        "vlgym": __version__,
        "results": [_describe(result, pages.get(result.name)) for result in results],
        "refused": refused,
        "pages_left_out": [
            {"result": result.name, "reason": result.page_error} for result in results if result.page_error
        ],
    }
    index = write_index(results, board, pages)
    old = _list_old_pages(out)
    (out / PAGES).mkdir(parents=True, exist_ok=True)
    for result in results:
        if result.page is not None:
            write_whole(out / PAGES / pages[result.name], result.page)
    write_whole(out / MARKER, json.dumps(board, indent=2) + "\n")
    write_whole(out / INDEX, index)
    for name in old - set(pages.values()):
        (out / PAGES / name).unlink(missing_ok=True)
    return board


def check_out(out: Path) -> None:
    """Check that a board can be written into a folder: a new one, an empty one, or a board's.

    Raises:
        UserError: it cannot.
    """
    check_writable("--out", out)
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; choose a folder.")
    if out.exists() and any(out.iterdir()) and _read_marker(out) is None:
        raise UserError(f"--out {out} is not empty and holds no board; choose another folder.")


def find_results(folder: Path, out: Path) -> list[tuple[str, Path]]:
    """Return name and folder of every result below a folder, sorted by name; the board's own folder is left out.

    Raises:
        UserError: there is none.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; name the one that holds the results' folders.")
    own = out.resolve()
    found = [path.parent for path in folder.rglob(HEADER) if own not in path.resolve().parents]
    if not found:
        raise UserError(f"{folder} holds no result, which is a folder with a run.json; see `vlgym eval --out`.")
    return sorted((clean(path.relative_to(folder).as_posix()), path) for path in found)


def read_published(path: Path = PUBLISHED) -> list[dict[str, Any]]:
    """Return the published tables."""
    return read_yaml(path.read_text(encoding="utf-8"))["tables"]


def name_pages(results: Sequence[Result]) -> dict[str, str]:
    """Return result -> name of its page, harmless on every file system and different for each."""
    pages: dict[str, str] = {}
    for result in results:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", result.name).strip("-.") or "result"
        digest = hashlib.sha256(result.name.encode("utf-8", "replace")).hexdigest()[:8]
        taken = {name.lower() for name in pages.values()}
        plain = f"{stem[:80]}.html"
        pages[result.name] = plain if plain.lower() not in taken else f"{stem[:80]}-{digest}.html"
    return pages


def write_index(results: Sequence[Result], board: Mapping[str, Any], pages: Mapping[str, str]) -> str:
    """Return the board's page."""
    script = (TEMPLATES / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    overall = rank_all(results)
    families = rank_families(results)
    axis = make_axis(asdict(place.value) for ranking in [overall, *families] for place in ranking.places)
    by_family = {ranking.title: {place.result.name: place for place in ranking.places} for ranking in families}
    ranked = [place.result.name for place in overall.places]
    return render(
        "leaderboard.html",
        results=results,
        board=board,
        pages=pages,
        overall=overall,
        unranked=[result for result in results if result.name not in ranked],
        labels=_label(results),
        by_family=by_family,
        groups=[("By family", _draw(families, axis)), ("By skill", _draw(rank_skills(results), axis))],
        axis=axis,
        tasks=list_tasks(results),
        published=read_published(),
        script=script,
        policy=f"; script-src 'sha256-{digest}'",
        version=__version__,
    )


def clean(text: str) -> str:
    """Return text in one line without characters that a terminal would act on."""
    return "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def _label(results: Sequence[Result]) -> dict[str, str]:
    """A result goes by its policy, and by its folder too where another has the same policy."""
    policies = [result.policy for result in results]
    return {
        result.name: result.policy if policies.count(result.policy) == 1 else f"{result.policy} ({result.name})"
        for result in results
    }


def _draw(rankings: Sequence[Ranking], axis: Axis) -> list[dict[str, Any]]:
    return [
        {
            "ranking": ranking,
            "rows": [
                (place, make_bar(_plain(place.value), axis=axis, floor=0.0, ceiling=1.0)) for place in ranking.places
            ],
        }
        for ranking in rankings
    ]


def _plain(value: Value) -> dict[str, Any]:
    return {"mean": value.mean, "low": value.low, "high": value.high}


def _describe(result: Result, page: str | None) -> dict[str, Any]:
    return {
        "result": result.name,
        "policy": result.policy,
        "numbers": "computed from the records" if result.from_records else "the report's own",
        "page": page and f"{PAGES}/{page}",
        "parts": [asdict(line) for line in result.lines],
    }


def _read_marker(out: Path) -> dict[str, Any] | None:
    try:
        held = json.loads((out / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return held if isinstance(held, dict) and held.get("kind") == KIND else None


def _list_old_pages(out: Path) -> set[str]:
    """Names of the pages that the board in this folder says are its own."""
    held = (_read_marker(out) or {}).get("results")
    names = [str(each.get("page")) for each in held if isinstance(each, dict)] if isinstance(held, list) else []
    stems = [name.removeprefix(f"{PAGES}/") for name in names]
    return {stem for stem in stems if _PAGE.fullmatch(stem)}
