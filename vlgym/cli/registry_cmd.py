"""`vlgym registry`: measure the first-party environments and write registry.yaml, a lock file.

`vlgym doctor` and `vlgym check` compare environments with it.
"""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..env.spec import EnvSpec
from ..errors import UserError, check_writable, nearest
from ..registry import FIRST_PARTY, Registry, get_registry, normal_name
from ..registry.registry_file import PACKAGED, compare_registries, find_behaviour_changes, read_registry, write_registry
from ..terminal import counting, open_progress
from .console import open_console


def write(
    path: Annotated[Path, Option("--path", show_default="the one in vlgym's package",
        help="The file.")] = PACKAGED,
    ids: Annotated[list[str] | None, Option("--id", metavar="ID",
        help="Only this environment; may be repeated.")] = None,
    old: Annotated[bool, Option("--old",
        help="Also published forms that a newer version replaces.")] = False,
    accept_behaviour_change: Annotated[bool, Option("--accept-behaviour-change",
        help="Record changed behaviour under an unchanged id.")] = False,
) -> None:  # fmt: skip
    """Measure every first-party environment (or those of --id), keep the rest, and write registry.yaml."""
    check_writable("--path", path.resolve())
    registry = get_registry()
    recorded = read_registry(path, pictures=True) if path.exists() else {}
    chosen = _choose(registry, ids, old or not recorded)

    # Hashes are quick: changed behaviour under an old id ends the command before play.
    live = _measure_hashes(registry, chosen)
    old_entries = {env_id: recorded[env_id] for env_id in live if env_id in recorded}
    changes = find_behaviour_changes(old_entries, live)
    if changes and not accept_behaviour_change:
        open_console().print("\n".join(changes))
        raise UserError(
            f"{path} was not written: {len(changes)} environment(s) behave differently under the same id. "
            "Give each a new version, or state that it is meant: vlgym registry --accept-behaviour-change"
        )

    # Entries that were not measured stay; those of ids that are gone do not.
    figures = _measure_figures(chosen)
    entries = {env_id: entry for env_id, entry in recorded.items() if ids or (not old and entry["spec"].replaced_by)}
    entries |= {env_id: {**measured, **figures[env_id]} for env_id, measured in live.items()}
    write_registry(entries, path, collect_suites(registry))
    changed = compare_registries(recorded, entries) if recorded else []
    lines = [f"changed: {line}" for line in changed]
    lines.append(f"{path}: {len(entries)} environment(s) written, {len(chosen)} measured.")
    open_console().print("\n".join(lines))


def first_party_specs(registry: Registry) -> dict[str, EnvSpec]:
    """Return id -> spec of every installed environment of the project's namespace."""
    return {env_id: spec for env_id, spec in registry.specs.items() if env_id.startswith(f"{FIRST_PARTY}/")}


def collect_suites(registry: Registry) -> dict[str, dict[str, Any]]:
    """Return suite -> id -> the part that registry.yaml records, of the first-party plugins."""
    suites: dict[str, dict[str, Any]] = {}
    for record in registry.plugins:
        for part in record.suites:
            if normal_name(record.distribution) in registry.project:
                suites.setdefault(part.suite, {})[part.env_id] = part.to_dict()
    return suites


def _choose(registry: Registry, ids: list[str] | None, old: bool) -> dict[str, EnvSpec]:
    specs = first_party_specs(registry)
    for env_id in ids or []:
        if registry.get(env_id) and env_id not in specs:
            raise UserError(
                f"{env_id} is not first-party (namespace {FIRST_PARTY}/), so it does not belong in registry.yaml."
                f"{nearest(env_id, specs)}"
            )
    if ids:
        return {env_id: specs[env_id] for env_id in specs if env_id in ids}
    return {env_id: spec for env_id, spec in specs.items() if old or not spec.replaced_by}


def _measure_hashes(registry: Registry, specs: dict[str, EnvSpec]) -> dict[str, dict[str, Any]]:
    from ..testing import measure_hashes

    with open_progress(open_console(stderr=True)) as progress:
        each = progress.track(specs.items(), description="hashes")
        return {env_id: measure_hashes(spec, registry.owner[env_id]) for env_id, spec in each}


def _measure_figures(specs: dict[str, EnvSpec]) -> dict[str, dict[str, Any]]:
    from ..testing import count_episodes, measure_blind_floor, measure_figures, measure_levels

    measured = {}
    with open_progress(open_console(stderr=True)) as progress:
        for env_id, spec in progress.track(specs.items(), description="figures"):
            episodes = count_episodes(spec) * (1 if spec.oracle == "none" else 2)
            with counting(progress, f"{spec.title}, episodes", episodes) as advance:
                figures = measure_figures(spec, advance)
            figures["blind"] = measure_blind_floor(spec, figures["floor"])
            if spec.levels:
                figures["levels"] = measure_levels(spec)
            measured[env_id] = figures
    return measured
