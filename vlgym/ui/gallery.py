"""Gallery: every installed environment with its card, its first pictures, and what random play, play without the
picture and the oracle reach.

The first pictures of this project's environments come with the package; others are made when they are asked for.
"""

from __future__ import annotations

import base64
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..registry import get_registry
from ..sight.blind_gap import find_blind_share, rate_difficulty
from .guarding import STATIC, render

FIGURES = (("floor", "random play"), ("blind", "without the picture"), ("ceiling", "oracle"))


def show_gallery(request: Request) -> Response:
    """Answer with all environments, by family."""
    families: dict[str, list[dict[str, Any]]] = {}
    for env_id in sorted(get_registry().current()):
        card = _find_card(env_id)
        families.setdefault(card["spec"].family, []).append(card)
    return render(request, "gallery.html", families=families)


def show_environment(request: Request) -> Response:
    """Answer with one environment."""
    return render(request, "environment.html", card=_find_card(_find_id(request)))


async def show_look(request: Request) -> Response:
    """Answer with an environment's first pictures and prompt; the page of the environment asks for this afterwards."""
    env_id = _find_id(request)
    return render(request, "look.html", env_id=env_id, look=await request.app.state.looks.look(env_id))


async def show_frame(request: Request) -> Response:
    """Answer with one of the first pictures."""
    seen, number = await request.app.state.looks.look(_find_id(request)), request.path_params["number"]
    if number >= len(seen["pictures"]):
        raise HTTPException(404, seen["error"] or "There is no such picture.")
    data = base64.b64decode(seen["pictures"][number])
    return Response(data, media_type="image/png", headers={"cache-control": "private, max-age=3600"})


def _find_id(request: Request) -> str:
    env_id = str(request.path_params["env_id"])
    if env_id not in get_registry().specs:
        raise HTTPException(404, "No such environment is installed. `vlgym list` shows all.")
    return env_id


def _find_card(env_id: str) -> dict[str, Any]:
    """Return the registry's entry of an environment; its difficulty is not more than the blind floor leaves."""
    registry = get_registry()
    spec, recorded = registry.specs[env_id], registry.known.get(env_id)
    packaged = f"first/{env_id.replace('/', '-')}.webp"
    return {
        "picture": f"/static/{packaged}" if (STATIC / packaged).is_file() else f"/gallery/frame/0/{env_id}",
        "spec": spec, "distribution": registry.owner[env_id],
        "difficulty": rate_difficulty(spec.difficulty, find_blind_share(recorded)),
        "figures": [(words, (recorded or {}).get(name)) for name, words in FIGURES],
    }  # fmt: skip


ROUTES = [
    Route("/gallery", show_gallery),
    Route("/gallery/env/{env_id:path}", show_environment),
    Route("/gallery/look/{env_id:path}", show_look),
    Route("/gallery/frame/{number:count}/{env_id:path}", show_frame),
]
