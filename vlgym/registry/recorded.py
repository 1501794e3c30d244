"""Compare an installed environment's card, prompt and parser with registry.yaml."""

from dataclasses import dataclass, field
from typing import Any

from ..env import VLEnv
from .lookup import Registry
from .making import build
from .registry_file import compare_registries


@dataclass(frozen=True)
class Comparison:
    """State of an installed environment against registry.yaml.

    Attributes:
        live: `spec_hash`, `prompt_hash` and `parser_hash` of the environment.
        options: what its `reset` takes, by name.
        differences: one line for each; none where registry.yaml does not know the id.
        error: why the environment cannot be made; `live` is empty then, and `options` is `None`.
    """

    live: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] | None = None
    differences: tuple[str, ...] = ()
    error: str | None = None


def hash_texts(env: VLEnv) -> dict[str, str]:
    """Return the hashes of what a model reads and how it is read."""
    return {
        "prompt_hash": env.prompt.digest(env.parser.describe()),
        "parser_hash": f"{env.parser.name}-v{env.parser.version}",
    }


def compare_recorded(registry: Registry, env_id: str) -> Comparison:
    """Make an installed environment with its default arguments and compare it with its entry."""
    spec = registry.specs[env_id]
    try:
        env = build(spec)
    except (Exception, SystemExit) as error:  # whatever a plugin does, the rest is still told
        return Comparison(error=f"{type(error).__name__}: {error}".splitlines()[0])
    hashes = hash_texts(env)
    options = {name: f"{option.meaning} ({option.valid})" for name, option in env.reset_options.items()}
    env.close()

    # An id that is not recorded differs from nothing.
    entry: dict[str, Any] = {"distribution": registry.owner[env_id], "spec": spec, **hashes}
    known = registry.known.get(env_id)
    differences = compare_registries({env_id: known}, {env_id: entry}) if known else []
    return Comparison({"spec_hash": spec.digest(), **hashes}, options, tuple(differences))
