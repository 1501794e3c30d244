"""Recorded episodes: the list with filters and orders, one turn by turn, two side by side."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..errors import plain_line
from ..files import FIELD, unseal
from ..play.trajectory import MALFORMED, METADATA, NO_PICTURE, read_record
from ..reports.charts import Curve, draw_curve
from ..reports.turns import ShownTurn
from ..types import Image
from .guarding import open_inside, render_page
from .index import Index, IndexedEpisode, get_index, read_row

TURNS_ON_PAGE = 100  # of an episode on one page
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
EPISODES_ON_PAGE = 50  # episodes on a page
LONGEST_WORD = 200  # characters of a word in an address
RESULT_WORDS = {"won": "won", "lost": "lost", "open": "not ended"}
NEWEST = "-newest"
ORDERS: dict[str, Callable[[IndexedEpisode], Any]] = {
    "newest": lambda episode: episode.newest,
    "return": lambda episode: episode.total,
    "turns": lambda episode: episode.turns,
    "failures": lambda episode: sum(code != "ok" for code in episode.codes),
}
Choice = Mapping[str, str]
"""`run` (its key), `env`, `result` (of `RESULT_WORDS`), `code` (a failure) and `q` (words of a
reply, whatever the case), each empty for all; and `sort`: of `ORDERS`, `-` for descending."""


def read_choice(params: Mapping[str, str]) -> Choice:
    """Return what an address says; what makes no sense is left out."""
    names = ("run", "env", "result", "code", "q", "sort")
    choice = {name: params.get(name, "")[:LONGEST_WORD] for name in names}
    choice["result"] = choice["result"] if choice["result"] in RESULT_WORDS else ""
    choice["sort"] = choice["sort"] if choice["sort"].removeprefix("-") in ORDERS else NEWEST
    return choice


def write_query(choice: Choice) -> str:
    """Return a choice as the end of an address; empty where nothing was chosen."""
    text = urlencode({name: value for name, value in choice.items() if value not in ("", NEWEST)})
    return f"?{text}" if text else ""


def read_count(text: str) -> int:
    """Return the number that a text says; -1 where it says none, or one too long for any count."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else -1


def filter_episodes(episodes: Iterable[IndexedEpisode], choice: Choice) -> list[IndexedEpisode]:
    """Return the episodes that a choice shows, on all its pages, in its order."""
    run, env, result, code, words, sort = choice.values()
    words = words.casefold()
    matches = [
        episode
        for episode in episodes
        if run in ("", episode.run)
        and env in ("", episode.env_id)
        and result in ("", episode.result)
        and (not code or code in episode.codes)
        and any(words in reply for reply in episode.searched)
    ]
    return sorted(matches, key=ORDERS[sort.removeprefix("-")], reverse=sort.startswith("-"))


def cut_page(rows: Sequence[Any], params: Mapping[str, str]) -> dict[str, Any]:
    """Return the `rows` of an address's page or the last one, its number `page` and all `pages`."""
    pages = max(1, -(-len(rows) // EPISODES_ON_PAGE))
    page = min(max(1, read_count(params.get("page", ""))), pages)
    end = page * EPISODES_ON_PAGE
    return {"rows": rows[end - EPISODES_ON_PAGE : end], "page": page, "pages": pages}


def show_list(request: Request) -> Response:
    """Answer with a page of the list."""
    index = get_index(request)
    choice = read_choice(request.query_params)
    episodes = index.episodes()
    matches = filter_episodes(episodes, choice)
    return render_page(
        request, "episodes.html", choice=choice, query=write_query(choice), count=len(matches), total=len(episodes),
        index=index, orders=ORDERS, results=RESULT_WORDS, envs=sorted({episode.env_id for episode in episodes}),
        codes=sorted({code for episode in episodes for code in episode.failures}),
        won=sum(episode.success for episode in matches), ended=sum(episode.over for episode in matches),
        **cut_page(matches, request.query_params),
    )  # fmt: skip


def show_episode(request: Request) -> Response:
    """Answer with one turn of an episode, and the whole episode below it."""
    index, params = get_index(request), request.path_params
    episode = find_episode(index, params["folder"], params["order"], params["turn"])
    choice = read_choice(request.query_params)
    matches = filter_episodes(index.episodes(), choice)
    place = next((place for place, each in enumerate(matches) if each is episode), len(matches))

    # A long episode is shown around the turn.
    begin = max(0, min(params["turn"] - TURNS_ON_PAGE // 2, episode.turns - TURNS_ON_PAGE))
    end = min(episode.turns, begin + TURNS_ON_PAGE)
    turns = [read_turn(index, episode, number) for number in range(begin, end)]
    return render_page(
        request, "turn.html", episode=episode, turn=turns[params["turn"] - begin], turns=turns,
        query=write_query(choice), before=matches[place - 1] if place and place < len(matches) else None,
        after=matches[place + 1] if place + 1 < len(matches) else None,
        run=index.runs[episode.run], runs=index.runs, curves=draw_turns(turns),
        others=[each for each in index.episodes() if each.same == episode.same and each.run != episode.run],
    )  # fmt: skip


def draw_turns(turns: Iterable[ShownTurn]) -> list[Curve]:
    """Return the curves of each turn's reward and a learner's notes.

    A turn's tokens have the geometric mean of their probabilities.
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for turn in turns:
        notes = turn.notes
        likely = [min(0.0, each) for each in notes.log_probs]
        values: dict[str, Any] = {
            "reward": turn.record and turn.record.reward, "value": notes.value, "advantage": notes.advantage,
            "probability of a token": math.exp(sum(likely) / len(likely)) if likely else None,
        }  # fmt: skip
        for name, value in values.items():
            if value is not None:
                lines[name].append((turn.number + 1.0, value))

    # The axis holds every value: a spike is a turn to look at.
    lines = {name: points for name, points in lines.items() if len(points) > 1}
    ends = {name: [value for _, value in points] for name, points in lines.items()}
    return [draw_curve(name, lines[name], "turn", (min(each), max(each))) for name, each in ends.items()]


def show_record_picture(request: Request) -> Response:
    """Answer with a picture of records; its name holds a hash of it, so a browser may keep it."""
    folder = get_index(request).folders.get(request.path_params["folder"])
    try:
        if folder is None:
            raise OSError("there is no such folder")
        with open_inside(folder.path, request.path_params["name"]) as file:
            data = file.read()
    except OSError as error:
        raise HTTPException(404, f"That picture cannot be read: {error}") from None
    kind = next((kind for beginning, kind in _SIGNATURES if data.startswith(beginning)), None)
    if kind is None:
        raise HTTPException(404, "That file is no PNG or JPEG picture.")
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})


def show_side(request: Request) -> Response:
    """Answer with a turn of two episodes; the shorter one stays at its last turn."""
    index, params = get_index(request), request.path_params
    sides = []
    for folder, order in ((params["folder"], params["order"]), (params["other"], params["other_order"])):
        episode = find_episode(index, folder, order)
        sides.append((episode, read_turn(index, episode, min(params["turn"], episode.turns - 1))))
    longest = max(episode.turns for episode, _ in sides)
    base = f"/side/{params['folder']}/{params['order']}/{params['other']}/{params['other_order']}"
    number = min(params["turn"], longest - 1)
    return render_page(request, "side.html", sides=sides, runs=index.runs, base=base, number=number, longest=longest)


def find_episode(index: Index, folder: str, order: int, turn: int = 0) -> IndexedEpisode:
    """Return the episode of an address, which has that turn."""
    entry = index.folders.get(folder)
    if entry is None or order >= len(entry.episodes) or turn >= entry.episodes[order].turns:
        raise HTTPException(404, "There is no such turn in the folders that `vlgym ui` was given.")
    return entry.episodes[order]


def read_turn(index: Index, episode: IndexedEpisode, number: int) -> ShownTurn:
    """Read a turn of an episode."""
    start, size = episode.offsets[number]

    def check_name(name: Any) -> Image:
        if not isinstance(name, str):
            raise TypeError("the name of a picture is no text")
        return NO_PICTURE

    # A line from elsewhere may be malformed in any way; the page then says so in place of the turn.
    try:
        with open_inside(index.folders[episode.folder].path, METADATA) as file:
            file.seek(start)
            row = read_row(file.read(size))
        record = replace(read_record(row, check_name), turn=number)
    except (OSError, *MALFORMED) as error:
        return ShownTurn(number, damage=f"The record cannot be read: {plain_line(str(error))}")
    # An edited record is shown, with a warning.
    damage = ""
    try:
        unseal(row, required=FIELD in row)
    except (ValueError, RecursionError) as error:
        damage = f"This record is not as it was written: {error}"
    at = f"/picture/{episode.folder}"

    def find(part: Mapping[str, Any]) -> str:
        return f"{at}/{quote(part['file_name'], errors='replace')}"

    return ShownTurn(number, record, find, damage)


WATCH_ROUTES = [
    Route("/episodes", show_list),
    Route("/turn/{folder}/{order:int}/{turn:int}", show_episode),
    Route("/picture/{folder}/{name:path}", show_record_picture),
    Route("/side/{folder}/{order:int}/{other}/{other_order:int}/{turn:int}", show_side),
]
