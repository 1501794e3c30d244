"""Watch: the list of recorded episodes, and one episode turn by turn."""

from __future__ import annotations

from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .choosing import ORDERS, RESULTS, choose, cut_page, find_neighbours, read_choice
from .curves import draw_curves
from .index import Episode, Index
from .pages import render
from .runs import read_facts
from .turns import Turn, open_picture, read_turn

TRACK = 12  # turns before and after the open one that are linked, in long episodes
SHOWN_CODES = 3  # failure codes of an episode that the list names


def routes() -> list[BaseRoute]:
    """Return the addresses of these pages."""
    return [
        Route("/", show_list),
        Route("/turn/{folder}/{order:int}/{turn:int}", show_turn),
        Route("/picture/{folder}/{order:int}/{turn:int}/{number:int}", show_picture),
        Route("/run/{run}", show_run),
    ]


def get_index(request: Request) -> Index:
    """Return the server's index of records; made when it is first asked for."""
    state = request.app.state
    if not hasattr(state, "index"):
        state.index = Index((*state.settings.paths, state.settings.out))
    found: Index = state.index
    return found


def show_list(request: Request) -> Response:
    """Answer with the list, or the page of it that was asked for."""
    index = get_index(request)
    share = index.refresh()
    choice = read_choice(request.query_params)
    episodes = index.episodes()
    found = choose(episodes, choice)
    shown, page, pages = cut_page(found, choice.page)
    run = index.runs.get(choice.run)
    return render(
        request, "list.html", choice=replace(choice, page=page), shown=shown, found=len(found), page=page, pages=pages,
        total=len(episodes), share=share, runs=index.runs, orders=ORDERS, results=RESULTS, shown_codes=SHOWN_CODES,
        envs=sorted({episode.env_id for episode in episodes}),
        codes=sorted({code for episode in episodes for code in episode.failures}),
        broken=index.count_broken(), problems=index.problems(), curves=draw_curves(run.path) if run else None,
        won=sum(episode.success for episode in found), ended=sum(episode.over for episode in found),
    )  # fmt: skip


def show_turn(request: Request) -> Response:
    """Answer with one turn of an episode."""
    index = get_index(request)
    index.refresh()
    episode, turn = find_turn(index, request.path_params, "folder", "order")
    choice = read_choice(request.query_params)
    before, after = find_neighbours(choose(index.episodes(), choice), episode)
    return render(
        request, "turn.html", episode=episode, turn=turn, choice=choice, before=before, after=after,
        run=index.runs[episode.run], track=list_track(episode.turns, turn.number),
        same=find_same_seed(index, episode), runs=index.runs,
    )  # fmt: skip


def show_picture(request: Request) -> Response:
    """Answer with a picture that a turn's record names."""
    index = get_index(request)
    if not index.folders:
        index.refresh()
    _, turn = find_turn(index, request.path_params, "folder", "order")
    number = request.path_params["number"]
    if number >= len(turn.pictures):
        raise HTTPException(404, "That turn has no such picture.")
    try:
        data, kind = open_picture(turn, number)
    except (OSError, ValueError) as error:
        raise HTTPException(404, f"That picture cannot be read: {error}") from None
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})


def show_run(request: Request) -> Response:
    """Answer with what a run says of itself, and its curves."""
    index = get_index(request)
    index.refresh()
    run = index.runs.get(request.path_params["run"])
    if run is None:
        raise HTTPException(404, "There is no such run in the folders that `vlgym ui` was given.")
    return render(request, "run.html", run=run, facts=read_facts(run.path), curves=draw_curves(run.path, every=True))


def find_turn(index: Index, said: dict[str, object], folder: str, order: str) -> tuple[Episode, Turn]:
    """Return the episode and the turn of an address.

    Raises:
        HTTPException: there are none.
    """
    episode = index.find(str(said[folder]), int(str(said[order])))
    number = int(str(said["turn"]))
    if episode is None or number >= episode.turns:
        raise HTTPException(404, "There is no such turn in the folders that `vlgym ui` was given.")
    return episode, read_turn(index.folders[episode.folder].place.folder, episode, number)


def list_track(turns: int, number: int) -> list[int | None]:
    """Return the turns that the page links; `None` stands for those left out where there are too many."""
    near = range(max(0, number - TRACK), min(turns, number + TRACK + 1))
    wanted = sorted({0, turns - 1, *near} if turns > 4 * TRACK else range(turns))
    track: list[int | None] = []
    for at in wanted:
        if track and at != wanted[wanted.index(at) - 1] + 1:
            track.append(None)
        track.append(at)
    return track


def find_same_seed(index: Index, episode: Episode) -> list[Episode]:
    """Return the other episodes of the same environment and seed, newest first."""
    if episode.seed is None:
        return []
    same = [each for each in index.episodes() if (each.seed, each.env_id) == (episode.seed, episode.env_id)]
    return sorted((each for each in same if each is not episode), key=lambda each: -each.newest)
