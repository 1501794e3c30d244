"""Watch: the list of recorded episodes, and one episode turn by turn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..play.trajectory import HEADER
from ..reports.words import shorten
from .choosing import ORDERS, RESULTS, choose, cut_page, find_neighbours, read_choice
from .curves import draw_curves
from .guarding import open_inside, render
from .index import Episode, Index, read_row
from .turns import LONGEST, Turn, open_picture, read_turn

LARGEST = 16_000_000  # bytes of a run.json
SHOWN_CODES = 3  # failure codes of an episode that the list names


def get_index(request: Request) -> Index:
    """Return the server's index of records, with everything that was written by now."""
    index: Index = request.app.state.index
    index.refresh()
    return index


def show_list(request: Request) -> Response:
    """Answer with the list, or the page of it that was asked for."""
    index = get_index(request)
    choice = read_choice(request.query_params)
    episodes = index.episodes()
    found = choose(episodes, choice)
    shown, page, pages = cut_page(found, choice.page)
    run = index.runs.get(choice.run)
    return render(
        request, "list.html", choice=replace(choice, page=page), shown=shown, found=len(found), page=page, pages=pages,
        total=len(episodes), runs=index.runs, orders=ORDERS, results=RESULTS, shown_codes=SHOWN_CODES,
        envs=sorted({episode.env_id for episode in episodes}),
        codes=sorted({code for episode in episodes for code in episode.failures}),
        broken=index.count_broken(), problems=index.problems(), curves=draw_curves(run.path) if run else None,
        won=sum(episode.success for episode in found), ended=sum(episode.over for episode in found),
    )  # fmt: skip


def show_turn(request: Request) -> Response:
    """Answer with one turn of an episode."""
    index, said = get_index(request), request.path_params
    episode, turn = find_turn(index, said["folder"], said["order"], said["turn"])
    choice = read_choice(request.query_params)
    before, after = find_neighbours(choose(index.episodes(), choice), episode)
    return render(
        request, "turn.html", episode=episode, turn=turn, choice=choice, before=before, after=after,
        run=index.runs[episode.run],
    )  # fmt: skip


def show_picture(request: Request) -> Response:
    """Answer with a picture that a turn's record names."""
    said = request.path_params
    _, turn = find_turn(get_index(request), said["folder"], said["order"], said["turn"])
    if said["number"] >= len(turn.pictures):
        raise HTTPException(404, "That turn has no such picture.")
    try:
        data, kind = open_picture(turn, said["number"])
    except (OSError, ValueError) as error:
        raise HTTPException(404, f"That picture cannot be read: {error}") from None
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})


def show_run(request: Request) -> Response:
    """Answer with a run's record and its curves."""
    run = get_index(request).runs.get(request.path_params["run"])
    if run is None:
        raise HTTPException(404, "There is no such run in the folders that `vlgym ui` was given.")
    return render(request, "run.html", run=run, record=_read_record(run.path), curves=draw_curves(run.path, every=True))


def find_turn(index: Index, folder: str, order: int, number: int) -> tuple[Episode, Turn]:
    """Return the episode and the turn of an address."""
    episode = index.find(folder, order)
    if episode is None or number >= episode.turns:
        raise HTTPException(404, "There is no such turn in the folders that `vlgym ui` was given.")
    return episode, read_turn(index.folders[folder].path, episode, number)


def _read_record(folder: Path) -> str:
    """Return a run's fields from its run.json; empty where that cannot be read."""
    try:
        with open_inside(folder, HEADER) as file:
            return shorten(json.dumps(read_row(file.read(LARGEST)), indent=2), LONGEST)
    except (OSError, ValueError, RecursionError):
        return ""


ROUTES = [
    Route("/", show_list),
    Route("/turn/{folder}/{order:count}/{turn:count}", show_turn),
    Route("/picture/{folder}/{order:count}/{turn:count}/{number:count}", show_picture),
    Route("/run/{run}", show_run),
]
