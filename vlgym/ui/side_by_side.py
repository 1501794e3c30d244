"""Two runs on the seeds that both played, and two episodes of one seed side by side."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .choosing import LONGEST, cut_page, read_page
from .guarding import render
from .index import Episode
from .watch import find_turn, get_index


def show_compare(request: Request) -> Response:
    """Answer with the seeds that two runs share."""
    index = get_index(request)
    said = {name: request.query_params.get(name, "")[:LONGEST] for name in ("a", "b", "only")}
    pairs = pair_up(index.episodes(), said["a"], said["b"])
    first_only = sum(first.success and not second.success for first, second in pairs)
    second_only = sum(second.success and not first.success for first, second in pairs)
    shown = [pair for pair in pairs if pair[0].success != pair[1].success] if said["only"] else pairs
    rows, page, pages = cut_page(shown, read_page(request.query_params))
    return render(
        request, "compare.html", runs=index.runs, said=said, pairs=pairs, rows=rows, page=page, pages=pages,
        first_only=first_only, second_only=second_only,
    )  # fmt: skip


def show_side(request: Request) -> Response:
    """Answer with a turn of two episodes; the shorter one stays at its last turn."""
    index, said = get_index(request), request.path_params
    sides = []
    for folder, order in ((said["folder"], said["order"]), (said["other"], said["other_order"])):
        episode = index.find(folder, order)
        sides.append(find_turn(index, folder, order, min(said["turn"], episode.turns - 1 if episode else 0)))
    longest = max(episode.turns for episode, _ in sides)
    base = f"/side/{said['folder']}/{said['order']}/{said['other']}/{said['other_order']}"
    return render(
        request, "side.html", sides=sides, runs=index.runs, base=base, number=min(said["turn"], longest - 1),
        longest=longest,
    )  # fmt: skip


def pair_up(episodes: Iterable[Episode], first: str, second: str) -> list[tuple[Episode, Episode]]:
    """Return the episodes that two runs share: the same environment, part, seed and repeat."""
    sides: dict[str, dict[tuple[str, str, int, int], Episode]] = {first: {}, second: {}}
    for episode in episodes:
        if episode.run in sides and episode.seed is not None:
            same = (episode.env_id, episode.part, episode.seed, episode.repeat)
            sides[episode.run].setdefault(same, episode)
    if first == second:
        return []
    return [(episode, sides[second][same]) for same, episode in sides[first].items() if same in sides[second]]


ROUTES = [
    Route("/compare", show_compare),
    Route("/side/{folder}/{order:count}/{other}/{other_order:count}/{turn:count}", show_side),
]
