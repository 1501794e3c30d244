"""Recorded episodes: the list, one episode turn by turn, and two episodes of one seed side by side."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import plain_line
from ..files import FIELD, unseal
from ..play.trajectory import MALFORMED, METADATA, NO_PICTURE, read_record
from ..reports.charts import Curve, draw_curve
from ..reports.compare import find_mcnemar_p
from ..reports.turns import Turn, show_turn
from .choosing import LONGEST, ORDERS, RESULTS, choose, cut_page, read_choice, read_page
from .guarding import open_inside, render
from .index import Episode, Index, get_index, read_row

LONGEST_TEXT = 60_000  # characters of a text in one piece
LONGEST_IN_ROW = 2_000  # the same, where all turns stand below each other
MOST_TURNS = 100  # of an episode on one page
LARGEST_PICTURE = 32_000_000  # bytes
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))


def show_list(request: Request) -> Response:
    """Answer with the list, or the page of it that was asked for."""
    index = get_index(request)
    choice = read_choice(request.query_params)
    episodes = index.episodes()
    found = choose(episodes, choice)
    shown, page, pages = cut_page(found, choice.page)
    return render(
        request, "episodes.html", choice=replace(choice, page=page), shown=shown, found=len(found), page=page,
        pages=pages, first=replace(choice, page=1).query, total=len(episodes), index=index,
        orders=ORDERS, results=RESULTS, envs=sorted({episode.env_id for episode in episodes}),
        codes=sorted({code for episode in episodes for code in episode.failures}),
        won=sum(episode.success for episode in found), ended=sum(episode.over for episode in found),
    )  # fmt: skip


def show_episode(request: Request) -> Response:
    """Answer with one turn of an episode, and the whole episode below it."""
    index, said = get_index(request), request.path_params
    episode = find_episode(index, said["folder"], said["order"], said["turn"])
    choice = read_choice(request.query_params)
    found = choose(index.episodes(), choice)
    place = next((place for place, each in enumerate(found) if each is episode), None)
    begin = max(0, min(said["turn"] - MOST_TURNS // 2, episode.turns - MOST_TURNS))
    numbers = range(begin, min(episode.turns, begin + MOST_TURNS))
    turns = [read_turn(index, episode, number, LONGEST_IN_ROW, only_last=True) for number in numbers]
    return render(
        request, "turn.html", episode=episode, turn=read_turn(index, episode, said["turn"]), turns=turns, choice=choice,
        before=found[place - 1] if place else None,
        after=found[place + 1] if place is not None and place + 1 < len(found) else None,
        run=index.runs[episode.run], runs=index.runs, curves=draw_turns(turns),
        others=[each for each in index.episodes() if each.same == episode.same and each.run != episode.run],
    )  # fmt: skip


def draw_turns(turns: Iterable[Turn]) -> list[Curve]:
    """Return the curves of what each turn was paid and what a learner thought of it."""
    records = [(turn.number + 1.0, turn.record, turn.notes) for turn in turns if turn.record is not None]
    lines = {
        "reward": [(at, record.reward) for at, record, _ in records],
        "value": [(at, notes.value) for at, _, notes in records if notes.value is not None],
        "advantage": [(at, notes.advantage) for at, _, notes in records if notes.advantage is not None],
        "probability of a token": [(at, average(notes.log_probs)) for at, _, notes in records if notes.log_probs],
    }
    return [draw_curve(name, seen, "turn") for name, seen in lines.items() if len(seen) > 1]


def average(log_probs: Sequence[float]) -> float:
    """Return the geometric mean of probabilities."""
    return math.exp(sum(min(0.0, each) for each in log_probs) / len(log_probs))


def show_picture(request: Request) -> Response:
    """Answer with a picture that a turn's record names: the turn's own, or one of its prompt."""
    index, said = get_index(request), request.path_params
    turn = read_turn(index, find_episode(index, said["folder"], said["order"], said["turn"]), said["turn"])
    if said["number"] >= len(turn.pictures):
        raise HTTPException(404, "That turn has no such picture.")
    try:
        with open_inside(index.folders[said["folder"]].path, turn.pictures[said["number"]]) as file:
            data = file.read(LARGEST_PICTURE + 1)
    except OSError as error:
        raise HTTPException(404, f"That picture cannot be read: {error}") from None
    kind = next((kind for beginning, kind in _KINDS if data.startswith(beginning)), None)
    if kind is None or len(data) > LARGEST_PICTURE:
        raise HTTPException(404, "That file is no PNG or JPEG picture of a sensible size.")
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})


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
        first_only=first_only, second_only=second_only, p=find_mcnemar_p(first_only, second_only),
    )  # fmt: skip


def show_side(request: Request) -> Response:
    """Answer with a turn of two episodes; the shorter one stays at its last turn."""
    index, said = get_index(request), request.path_params
    sides = []
    for folder, order in ((said["folder"], said["order"]), (said["other"], said["other_order"])):
        episode = find_episode(index, folder, order)
        sides.append((episode, read_turn(index, episode, min(said["turn"], episode.turns - 1))))
    longest = max(episode.turns for episode, _ in sides)
    base = f"/side/{said['folder']}/{said['order']}/{said['other']}/{said['other_order']}"
    return render(
        request, "side.html", sides=sides, runs=index.runs, base=base, number=min(said["turn"], longest - 1),
        longest=longest,
    )  # fmt: skip


def pair_up(episodes: Iterable[Episode], first: str, second: str) -> list[tuple[Episode, Episode]]:
    """Return the episodes that two runs share: the same environment, part, seed and repeat."""
    sides: dict[str, dict[object, Episode]] = {first: {}, second: {}}
    for episode in episodes:
        if episode.run in sides and episode.same is not None:
            sides[episode.run].setdefault(episode.same, episode)
    if first == second:
        return []
    return [(episode, sides[second][same]) for same, episode in sides[first].items() if same in sides[second]]


def find_episode(index: Index, folder: str, order: int, turn: int = 0) -> Episode:
    """Return the episode of an address, which has that turn."""
    found = index.folders.get(folder)
    if found is None or order >= len(found.episodes) or turn >= found.episodes[order].turns:
        raise HTTPException(404, "There is no such turn in the folders that `vlgym ui` was given.")
    return found.episodes[order]


def read_turn(
    index: Index, episode: Episode, number: int, longest: int = LONGEST_TEXT, *, only_last: bool = False
) -> Turn:
    """Read a turn of an episode; its pictures are names of files, and the first one is its own."""
    start, size = episode.offsets[number]
    damage = ""
    try:
        with open_inside(index.folders[episode.folder].path, METADATA) as file:
            file.seek(start)
            row = read_row(file.read(size))
        record = replace(read_record(row, defaultdict(lambda: NO_PICTURE)), turn=number)
        try:
            unseal(row, required=FIELD in row)
        except (ValueError, RecursionError) as error:
            damage = f"This record is not as it was written: {error}"
        return show_turn(record, longest, own=row["file_name"], only_last=only_last, damage=damage)
    except (OSError, *MALFORMED) as error:
        return Turn(number, damage=f"The record cannot be read: {plain_line(str(error))}")


ROUTES = [
    Route("/episodes", show_list),
    Route("/turn/{folder}/{order:count}/{turn:count}", show_episode),
    Route("/picture/{folder}/{order:count}/{turn:count}/{number:count}", show_picture),
    Route("/compare", show_compare),
    Route("/side/{folder}/{order:count}/{other}/{other_order:count}/{turn:count}", show_side),
]
