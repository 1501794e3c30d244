"""Gallery: every installed environment with its card, its first picture, and what random play, play without the
picture and the oracle reach.

The pictures come with the package. The play page shows those of other environments, and every prompt.
"""

from __future__ import annotations

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
    env_id = str(request.path_params["env_id"])
    if env_id not in get_registry().specs:
        raise HTTPException(404, "No such environment is installed. `vlgym list` shows all.")
    return render(request, "environment.html", card=_find_card(env_id))


def _find_card(env_id: str) -> dict[str, Any]:
    """Return the registry's entry of an environment; its difficulty is not more than the blind floor leaves."""
    registry = get_registry()
    spec, recorded = registry.specs[env_id], registry.known.get(env_id)
    picture = f"first/{env_id.replace('/', '-')}.webp"
    return {
        "picture": f"/static/{picture}" if (STATIC / picture).is_file() else "",
        "spec": spec, "distribution": registry.owner[env_id],
        "difficulty": rate_difficulty(spec.difficulty, find_blind_share(recorded)),
        "figures": [(words, (recorded or {}).get(name)) for name, words in FIGURES],
    }  # fmt: skip


ROUTES = [Route("/gallery", show_gallery), Route("/gallery/env/{env_id:path}", show_environment)]
