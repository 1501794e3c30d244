"""Two runs on the seeds that both played, and two episodes of one seed side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .choosing import LONGEST, cut_page
from .index import Episode
from .pages import render
from .watch import find_turn, get_index, list_track


@dataclass(frozen=True)
class Pair:
    """The same episode in two runs.

    Attributes:
        first: in the one.
        second: in the other.
    """

    first: Episode
    second: Episode

    @property
    def differs(self) -> bool:
        """Whether one was won and the other was not."""
        return self.first.success != self.second.success


def routes() -> list[BaseRoute]:
    """Return the addresses of these pages."""
    return [
        Route("/compare", show_compare),
        Route("/side/{folder}/{order:int}/{other}/{other_order:int}/{turn:int}", show_side),
    ]


def show_compare(request: Request) -> Response:
    """Answer with the seeds that two runs share."""
    index = get_index(request)
    index.refresh()
    said = {name: request.query_params.get(name, "")[:LONGEST] for name in ("a", "b", "only", "page")}
    pairs = list(pair_up(index.episodes(), said["a"], said["b"]))
    shown = [pair for pair in pairs if pair.differs] if said["only"] else pairs
    number = int(said["page"]) if said["page"].isascii() and said["page"].isdigit() and len(said["page"]) < 9 else 1
    rows, page, pages = cut_page(shown, max(1, number))
    return render(
        request, "compare.html", runs=index.runs, said=said, pairs=pairs, rows=rows, page=page, pages=pages,
        first_only=sum(pair.differs and pair.first.success for pair in pairs),
        second_only=sum(pair.differs and pair.second.success for pair in pairs),
    )  # fmt: skip


def show_side(request: Request) -> Response:
    """Answer with a turn of two episodes; the shorter one stays at its last turn."""
    index = get_index(request)
    index.refresh()
    said = dict(request.path_params)
    sides = []
    for folder, order in (("folder", "order"), ("other", "other_order")):
        episode = index.find(said[folder], said[order])
        last = max(0, episode.turns - 1) if episode else 0
        sides.append(find_turn(index, {**said, "turn": min(said["turn"], last)}, folder, order))
    longest = max(episode.turns for episode, _ in sides)
    base = f"/side/{said['folder']}/{said['order']}/{said['other']}/{said['other_order']}"
    return render(
        request, "side.html", sides=sides, runs=index.runs, base=base, number=min(said["turn"], longest - 1),
        longest=longest, track=list_track(longest, said["turn"]),
    )  # fmt: skip


def pair_up(episodes: Iterable[Episode], first: str, second: str) -> Iterator[Pair]:
    """Yield the episodes that two runs share: the same environment, part, seed and repeat.

    Args:
        episodes: of all runs.
        first: key of a run.
        second: key of another one.
    """
    sides: dict[str, dict[tuple[str, str, int, int], Episode]] = {first: {}, second: {}}
    for episode in episodes:
        if episode.run in sides and episode.seed is not None:
            same = (episode.env_id, episode.part, episode.seed, episode.repeat)
            sides[episode.run].setdefault(same, episode)
    if first != second:
        for same, episode in sides[first].items():
            if same in sides[second]:
                yield Pair(episode, sides[second][same])
