"""Gallery: every installed environment with its card, its first pictures, its certificate where there is one, and what
random play, play without the picture and the oracle reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..blind_gap import find_blind_share, rate_difficulty
from ..registry import get_registry
from ..spec import EnvSpec
from .certificates import find_certificates
from .frames import Frames
from .pages import list_pages, render

FIGURES = (("floor", "random play"), ("blind", "without the picture"), ("ceiling", "oracle"))


@dataclass(frozen=True)
class Card:
    """What the registry knows of an environment.

    Attributes:
        spec: its card.
        distribution: that holds it.
        difficulty: the label; not more than the blind floor leaves.
        figures: name, and `success` and `return` that registry.yaml records; `None` where it records none.
    """

    spec: EnvSpec
    distribution: str
    difficulty: str
    figures: list[tuple[str, Mapping[str, Any] | None]]


def routes() -> list[BaseRoute]:
    """Return the addresses of these pages."""
    return [
        Route("/gallery", show_gallery),
        Route("/gallery/env/{env_id:path}", show_environment),
        Route("/gallery/look/{env_id:path}", show_look),
        Route("/gallery/frame/{number:int}/{env_id:path}", show_frame),
    ]


def show_gallery(request: Request) -> Response:
    """Answer with all environments, by family."""
    families: dict[str, list[Card]] = {}
    for env_id in sorted(get_registry().current()):
        card = _find_card(env_id)
        families.setdefault(card.spec.family, []).append(card)
    certificates = find_certificates(request.app.state.settings.paths)
    return render(request, "gallery.html", families=families, certificates=certificates)


def show_environment(request: Request) -> Response:
    """Answer with one environment."""
    env_id = _find_id(request)
    certificates = find_certificates(request.app.state.settings.paths)
    return render(
        request, "environment.html", card=_find_card(env_id), certificate=certificates.get(env_id),
        playable=any(name == "play" for name, _, _ in list_pages()),
    )  # fmt: skip


def show_look(request: Request) -> Response:
    """Answer with an environment's first pictures and prompt; the page of the environment asks for this afterwards."""
    env_id = _find_id(request)
    return render(request, "look.html", env_id=env_id, look=_get_frames(request).look(env_id))


def show_frame(request: Request) -> Response:
    """Answer with one of the first pictures."""
    look = _get_frames(request).look(_find_id(request))
    number = request.path_params["number"]
    if number >= len(look.pictures):
        raise HTTPException(404, look.error or "There is no such picture.")
    return Response(look.pictures[number], media_type="image/png", headers={"cache-control": "private, max-age=3600"})


def _find_id(request: Request) -> str:
    env_id = str(request.path_params["env_id"])
    if env_id not in get_registry().specs:
        raise HTTPException(404, "No such environment is installed. `vlgym list` shows all.")
    return env_id


def _find_card(env_id: str) -> Card:
    registry = get_registry()
    spec, recorded = registry.specs[env_id], registry.known.get(env_id)
    figures = [(words, (recorded or {}).get(name)) for name, words in FIGURES]
    return Card(spec, registry.owner[env_id], rate_difficulty(spec.difficulty, find_blind_share(recorded)), figures)


def _get_frames(request: Request) -> Frames:
    state = request.app.state
    if not hasattr(state, "frames"):
        state.frames = Frames()
    found: Frames = state.frames
    return found
