"""Environments: a gallery, and play, by a person, through the model's picture, prompt and parser.

The gallery's pictures come with the package; the play page shows those of other environments. Every
form works without JavaScript, and says which turn it was made for: one sent twice changes nothing.
"""

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
from ..env.rendering import encode_png
from ..env.seeding import SPLITS
from ..errors import UserError
from ..games.multi import PLAYERS
from ..games.several import SKILL
from ..parsers import check_named
from ..registry import get_registry
from ..sight.blind_gap import find_blind_share, rate_difficulty
from .games import PageGame
from .guarding import STATIC, render_page
from .index import make_key
from .watch import read_count

FIRST_IDS = ("vlgym/NumberLine-v1", "vlgym/Sokoban-v0")  # a new player begins with these
FLOOR_WORDS = (("floor", "random play"), ("blind", "without the picture"), ("ceiling", "oracle"))
MOST_EPISODES = 1000
MOST_ACTIONS = 500  # of the legal ones that have a button; the others can be typed
LARGEST_FORM = 1_000_000  # bytes
KEYS = (  # arrow keys, and the words of the actions that they stand for
    ("ArrowUp", re.compile(r"\b(up|forward|north)\b")),
    ("ArrowDown", re.compile(r"\b(down|back|backward|south)\b")),
    ("ArrowLeft", re.compile(r"\b(left|west)\b")), ("ArrowRight", re.compile(r"\b(right|east)\b")),
)  # fmt: skip


def show_gallery(request: Request) -> Response:
    """Answer with all environments, by family."""
    families: dict[str, list[dict[str, Any]]] = {}
    for env_id in sorted(get_registry().current()):
        card = _find_card(env_id)
        families.setdefault(card["spec"].family, []).append(card)
    return render_page(request, "gallery.html", families=families)


def show_environment(request: Request) -> Response:
    """Answer with one environment."""
    env_id = str(request.path_params["env_id"])
    if env_id not in get_registry().specs:
        raise HTTPException(404, "No such environment is installed. `vlgym list` shows all.")
    return render_page(request, "environment.html", card=_find_card(env_id))


def _find_card(env_id: str) -> dict[str, Any]:
    """Return an environment's entry, with the difficulty that the blind floor leaves."""
    registry = get_registry()
    spec, recorded = registry.specs[env_id], registry.known.get(env_id)
    picture = f"first/{env_id.replace('/', '-')}.webp"
    return {
        "picture": f"/static/{picture}" if (STATIC / picture).is_file() else "",
        "spec": spec, "distribution": registry.owner[env_id],
        "difficulty": rate_difficulty(spec.difficulty, find_blind_share(recorded)),
        "figures": [(words, (recorded or {}).get(name)) for name, words in FLOOR_WORDS],
    }  # fmt: skip


def show_start(request: Request, form: Mapping[str, str] | None = None, error: str = "") -> Response:
    """Answer with the form that begins a game, and the games that are open."""
    form, games, registry = form or request.query_params, request.app.state.games, get_registry()
    families: dict[str, list[str]] = {}
    for env_id, spec in sorted(registry.current().items()):
        families.setdefault(spec.family, []).append(env_id)
    return render_page(
        request, "play.html", 400 if error else 200, families=families, splits=SPLITS, error=error, out=games.out,
        first=[env_id for env_id in FIRST_IDS if env_id in registry.specs], games=list(games.open.values()),
        form={name: form.get(name, "") for name in ("env", "split", "episodes", "arguments", "opponents")},
        others=["self", *PLAYERS],
    )  # fmt: skip


def begin(request: Request, form: dict[str, str]) -> Response:
    """Begin a game and lead to it."""
    try:
        spec = get_registry().get(form.get("env", ""))
        episodes = read_count(form.get("episodes") or "1")
        if not 1 <= episodes <= MOST_EPISODES:
            raise UserError(f"Episodes: {form['episodes'][:40]!r} must be a whole number from 1 to {MOST_EPISODES}.")

        # A page may come from anywhere: no argument names code.
        lines = [line for line in form.get("arguments", "").splitlines() if line.strip()]
        arguments = check_named(read_arguments(lines, "Arguments:"), "The form")
        if others := form.get("opponents", "").strip():
            if SKILL not in spec.skills:
                raise UserError(f"{spec.id} is for one agent and has no other seats; leave 'Other seats' empty.")
            arguments["opponents"] = others
        split = form.get("split") or "train"
        game = request.app.state.games.begin(spec.id, arguments, split=split, episodes=episodes)
    except UserError as error:
        return show_start(request, form, str(error))
    return RedirectResponse(f"/play/{game.key}", 303)


def show_game(request: Request) -> Response:
    """Answer with the turn that a game is at, or the end of its episode."""
    game = _find_game(request)
    switches = {name: request.query_params.get(name) == "1" for name in ("oracle", "view")}
    if switches["oracle"]:
        request.app.state.games.go_on(game, game.count, PageGame.ask_oracle)

    # The count in a picture's address lets the browser load the next one.
    address = f"/play/{game.key}/picture/{game.count}"
    spec = get_registry().get(game.part.env_id)
    numbers = {id(each): at for at, each in enumerate(game.pictures)}
    return render_page(
        request, "game.html", game=game, turn=game.turn, switches=switches, spec=spec, address=address,
        choices=name_keys(game.legal[:MOST_ACTIONS]), more=max(0, len(game.legal) - MOST_ACTIONS),
        lines=any("\n" in action for action in game.legal), find=lambda part: f"{address}/{numbers[id(part['image'])]}",
        most=game.part.arguments.get("max_turns", spec.max_turns), run=make_key(game.out.resolve()),
    )  # fmt: skip


def answer(request: Request, form: dict[str, str]) -> Response:
    """Pass on what the person wrote or clicked, and lead to the next turn; or end the game."""
    game, games = _find_game(request), request.app.state.games
    if form.get("end"):
        games.close(game)
        return RedirectResponse("/play", 303)

    # The form's count is that of the turn that it was made for.
    count, action = read_count(form.get("count", "")), read_count(form.get("action", ""))
    x, y = read_count(form.get("point.x", "")), read_count(form.get("point.y", ""))
    if form.get("next"):
        games.go_on(game, count, PageGame.begin_episode)
    elif min(x, y) >= 0:
        games.go_on(game, count, PageGame.click, x, y)
    else:
        written = form.get("reply", "").replace("\r\n", "\n")
        games.go_on(game, count, PageGame.answer, action if action >= 0 else written)
    query = "&".join(f"{name}=1" for name in ("oracle", "view") if form.get(name) == "1")
    return RedirectResponse(f"/play/{game.key}{'?' + query if query else ''}", 303)


def show_game_picture(request: Request) -> Response:
    """Answer with a picture of the turn that a game is at."""
    number, pictures = int(request.path_params["number"]), _find_game(request).pictures
    if number >= len(pictures):
        raise HTTPException(404, "That turn has no such picture.")
    return Response(encode_png(pictures[number]), media_type="image/png")


def name_keys(actions: Sequence[Any]) -> list[tuple[int, str, str]]:
    """Return number, name and arrow key of each action; a key is the first's with its word."""
    free, keys = dict(KEYS), []
    for number, name in enumerate(map(str, actions)):
        key = next((key for key, word in free.items() if word.search(name.lower())), "")
        free.pop(key, None)
        keys.append((number, name, key))
    return keys


def _find_game(request: Request) -> PageGame:
    game: PageGame | None = request.app.state.games.open.get(str(request.path_params["game"]))
    if game is None:
        raise HTTPException(404, "There is no such game any more. What was finished stands in the list of episodes.")
    return game


def _with_form(handle: Callable[[Request, dict[str, str]], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads a form and answers in a thread: games may take long."""

    async def endpoint(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_FORM:
                raise HTTPException(413, f"This form is too large; it may have {LARGEST_FORM} bytes.")
        text = body.decode("utf-8", "replace")
        form = dict(parse_qsl(text, keep_blank_values=True))
        return await run_in_threadpool(handle, request, form)

    return endpoint


PLAY_ROUTES = [
    Route("/gallery", show_gallery),
    Route("/gallery/env/{env_id:path}", show_environment),
    Route("/play", show_start, methods=["GET"]),
    Route("/play", _with_form(begin), methods=["POST"]),
    Route("/play/{game}", show_game, methods=["GET"]),
    Route("/play/{game}", _with_form(answer), methods=["POST"]),
    Route("/play/{game}/picture/{count:int}/{number:int}", show_game_picture, methods=["GET"]),
]
