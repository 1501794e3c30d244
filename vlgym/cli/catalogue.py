"""State of an id for `list`, `show` and `registry`: installed or not, its project, and how to install it.

Prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..env.spec import EnvSpec
from ..registry import FIRST_PARTY, Registry
from ..registry.installing import how_to_install
from ..registry.plugins import SWITCH
from ..sight.blind_gap import find_blind_share, rate_difficulty


@dataclass(frozen=True)
class Entry:
    """One id of the catalogue.

    Attributes:
        spec: its card; `None` where only the clash of two plugins is known.
        distribution: the distribution(s) that hold it.
        installed: whether `make` can build it.
        external: a third party's, not this project's.
        remedy: what stands in the way, or the command that fixes it; empty when installed.
        recorded: its entry of registry.yaml; `None` where there is none.
    """

    env_id: str
    spec: EnvSpec | None
    distribution: str
    installed: bool
    external: bool
    remedy: str = ""
    recorded: Mapping[str, Any] | None = None

    @property
    def difficulty(self) -> str:
        """The label: what the card states, but not more than the blind floor leaves."""
        return rate_difficulty(self.spec.difficulty, find_blind_share(self.recorded)) if self.spec is not None else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the columns of `vlgym list` as plain data."""
        card = {**self.spec.to_dict(), "difficulty": self.difficulty} if self.spec is not None else {}
        columns = ("family", "difficulty", "oracle", "max_turns", "summary", "skills")
        figures = self.recorded or {}
        return {
            "id": self.env_id,
            "distribution": self.distribution,
            "installed": self.installed,
            "external": self.external,
            "remedy": self.remedy,
            **{name: card.get(name) for name in columns},
            **{name: figures.get(name) for name in ("floor", "blind", "ceiling")},
        }


def list_entries(registry: Registry) -> list[Entry]:
    """Return every id that is installed, known from registry.yaml, claimed twice or without a right; sorted."""
    env_ids = sorted({*registry.specs, *registry.known, *registry.clashes, *registry.refused})
    return [find_entry(registry, env_id) for env_id in env_ids]


def find_entry(registry: Registry, env_id: str) -> Entry:
    """Return what is known of one id."""
    if env_id in registry.clashes:
        owners = registry.clashes[env_id]
        external = not is_first_party(env_id)
        remedy = f"claimed by {' and '.join(owners)}: vlgym doctor"
        return Entry(env_id, None, ", ".join(owners), installed=False, external=external, remedy=remedy)
    if env_id in registry.known and env_id not in registry.specs:
        entry = registry.known[env_id]
        remedy = _find_remedy(registry, entry["distribution"])
        return Entry(
            env_id, entry["spec"], entry["distribution"], installed=False, external=False, remedy=remedy, recorded=entry
        )
    if env_id in registry.refused and env_id not in registry.specs:
        claimed_by = ", ".join(registry.refused[env_id])
        return Entry(
            env_id, None, claimed_by, installed=False, external=True, remedy="refused, not its id: vlgym doctor"
        )
    spec = registry.get(env_id)
    return Entry(
        env_id, spec, registry.owner[env_id], installed=True, external=not is_first_party(env_id),
        recorded=registry.known.get(env_id),
    )  # fmt: skip


def is_first_party(env_id: str) -> bool:
    """True if an installed id is this project's own, and so belongs in registry.yaml.

    The registry reserves this namespace.
    """
    return env_id.startswith(f"{FIRST_PARTY}/")


def first_party_specs(registry: Registry) -> dict[str, EnvSpec]:
    """Return id -> spec of every installed first-party environment."""
    return {env_id: spec for env_id, spec in registry.specs.items() if is_first_party(env_id)}


def _find_remedy(registry: Registry, distribution: str) -> str:
    records = [record for record in registry.plugins if record.distribution == distribution]
    if any(record.error for record in records):
        return f"{distribution} failed to load: vlgym doctor"
    if any(not record.enabled for record in records):
        return f"left out by {SWITCH}"
    return how_to_install(distribution)
