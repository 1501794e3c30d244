"""Play: a person plays an installed environment through the model's picture, prompt, parser and turn limit.

Every form works without JavaScript: a reply is sent, and the next turn is another page. A form says which turn it was
made for, so that one sent twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..env.arguments import read_arguments
from ..env.seeding import SPLITS
from ..errors import UserError
from ..evaluation.policy_names import ALONE
from ..games.multi_game import PLAYERS
from ..games.several import SKILL
from ..parsers import check_named
from ..registry import get_registry
from .choosing import read_count
from .games import HOT_SEAT, Game, Games
from .guarding import render
from .index import make_key

FIRST = ("vlgym/NumberLine-v1", "vlgym/Sokoban-v0")
"""Environments that a new player begins with."""

MOST_EPISODES = 1000
LARGEST_FORM = 1_000_000  # bytes
KEYS = (
    ("ArrowUp", re.compile(r"\b(up|forward|north)\b")), ("ArrowDown", re.compile(r"\b(down|back|backward|south)\b")),
    ("ArrowLeft", re.compile(r"\b(left|west)\b")), ("ArrowRight", re.compile(r"\b(right|east)\b")),
)  # fmt: skip
"""Arrow keys, and the words of the actions that they stand for."""


def show_start(request: Request, said: Mapping[str, str] | None = None, error: str = "") -> Response:
    """Answer with the form that begins a game, and the games that are open."""
    said, games, registry = said or request.query_params, _games(request), get_registry()
    families: dict[str, list[str]] = {}
    for env_id, spec in sorted(registry.current().items()):
        families.setdefault(spec.family, []).append(env_id)
    return render(
        request, "play.html", 400 if error else 200, families=families, splits=SPLITS, error=error, out=games.out,
        first=[env_id for env_id in FIRST if env_id in registry.specs], games=list(games.open.values()),
        said={name: said.get(name, "") for name in ("env", "split", "episodes", "arguments", "opponents")},
        others=[HOT_SEAT, *dict.fromkeys((*PLAYERS, *ALONE)), *games.policies],
    )  # fmt: skip


def begin(request: Request, said: dict[str, str]) -> Response:
    """Begin a game and lead to it."""
    try:
        spec = get_registry().get(said.get("env", ""))
        episodes = read_count(said.get("episodes") or "1")
        if not 1 <= episodes <= MOST_EPISODES:
            raise UserError(f"Episodes: {said['episodes'][:40]!r} must be a whole number from 1 to {MOST_EPISODES}.")
        lines = [line for line in said.get("arguments", "").splitlines() if line.strip()]
        arguments = read_arguments(lines, "Arguments:")
        if "parser" in arguments:
            check_named(arguments["parser"], "The form")
        others = said.get("opponents", "").strip()
        if others and SKILL not in spec.skills:
            raise UserError(f"{spec.id} is for one agent and has no other seats; leave 'Other seats' empty.")
        game = _games(request).begin(
            env_id=spec.id, split=said.get("split") or "train", episodes=episodes, arguments=arguments,
            opponents=others, policy=_games(request).policies.get(others),
        )  # fmt: skip
    except UserError as error:
        return show_start(request, said, str(error))
    return RedirectResponse(f"/play/{game.key}", 303)


def show_game(request: Request) -> Response:
    """Answer with the turn that a game is at, or the end of its episode."""
    game = _find_game(request)
    switches = {name: request.query_params.get(name) == "1" for name in ("oracle", "view")}
    if switches["oracle"] and not game.asked_oracle and game.now.get("kind") == "turn":
        _games(request).answer(game, game.count, {"oracle": True})
    covered = bool(game.now.get("hot")) and request.query_params.get("shown") != str(game.count)
    before = game.now.get("before") or {}
    return render(
        request, "game.html", covered=covered, game=game, now=game.now, before=before, switches=switches,
        choices=name_keys(game.now.get("actions") or ()),
        find=lambda name: f"/play/{game.key}/picture/{game.count}/{name}",
        run=make_key(game.folder.resolve()), won=sum(each.get("success") is True for each in game.results),
    )  # fmt: skip


def answer(request: Request, said: dict[str, str]) -> Response:
    """Pass on what the person wrote or clicked, and lead to the next turn; or end the game."""
    game, games = _find_game(request), _games(request)
    if said.get("end"):
        games.close(game)
        return RedirectResponse("/play", 303)
    count, action = read_count(said.get("count", "")), read_count(said.get("action", ""))
    if said.get("next"):
        games.answer(game, count, {"next": True})
    elif action >= 0:
        games.answer(game, count, {"action": action})
    else:
        games.answer(game, count, {"reply": said.get("reply", "").replace("\r\n", "\n")})
    kept = "&".join(f"{name}=1" for name in ("oracle", "view") if said.get(name) == "1")
    return RedirectResponse(f"/play/{game.key}{'?' + kept if kept else ''}", 303)


def show_picture(request: Request) -> Response:
    """Answer with a picture of the turn that a game is at."""
    data = _find_game(request).picture(int(request.path_params["number"]))
    if data is None:
        raise HTTPException(404, "That turn has no such picture.")
    return Response(data, media_type="image/png")


def name_keys(actions: Sequence[Any]) -> list[tuple[int, str, str]]:
    """Return number, name and arrow key of each action; a key stands for the first action that has its word."""
    free = dict(KEYS)
    found = []
    for number, action in enumerate(actions):
        name = str(action)
        key = next((key for key, word in free.items() if word.search(name.lower())), "")
        free.pop(key, None)
        found.append((number, name, key))
    return found


def _find_game(request: Request) -> Game:
    game = _games(request).open.get(str(request.path_params["game"]))
    if game is None:
        raise HTTPException(404, "There is no such game any more. What was finished stands in the list of episodes.")
    return game


def _games(request: Request) -> Games:
    games: Games = request.app.state.games
    return games


def _with_form(handle: Callable[[Request, dict[str, str]], Response]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that reads the form which is sent, and answers in a thread: an environment may take long."""

    async def endpoint(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_FORM:
                raise HTTPException(413, f"This form is too large; it may have {LARGEST_FORM} bytes.")
        text = body.decode("utf-8", "replace")
        return await run_in_threadpool(handle, request, dict(parse_qsl(text, keep_blank_values=True)))

    return endpoint


ROUTES = [
    Route("/play", show_start, methods=["GET"]),
    Route("/play", _with_form(begin), methods=["POST"]),
    Route("/play/{game}", show_game, methods=["GET"]),
    Route("/play/{game}", _with_form(answer), methods=["POST"]),
    Route("/play/{game}/picture/{count:count}/{number:count}", show_picture, methods=["GET"]),
]
