"""`vlgym registry write` and `vlgym registry check`.

Measure the first-party environments and compare them with registry.yaml, a lock file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..env.spec import EnvSpec
from ..errors import RegistryFileError, UserError, check_writable, nearest
from ..registry import FIRST_PARTY, Registry, get_registry, normal_name
from ..registry.registry_file import (
    compare_registries,
    find_behaviour_changes,
    read_registry,
    read_suites,
    write_registry,
)
from ..terminal import counting, open_progress
from .console import open_console

FILE_NAME = "registry.yaml"

registry_app = typer.Typer(
    help="Write registry.yaml, the catalogue of first-party environments, or check that it is fresh.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FilePath = Annotated[
    Path | None, typer.Option("--path", help="The file; default: registry.yaml of the repository that you stand in.")
]
Old = Annotated[bool, typer.Option("--old", help="Also published forms that a newer version replaces.")]
Ids = Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="Only this environment; may be repeated.")]


@registry_app.command()
def write(
    path: FilePath = None,
    ids: Ids = None,
    old: Old = False,
    accept_behaviour_change: Annotated[
        bool, typer.Option("--accept-behaviour-change", help="Record changed behaviour under an unchanged id.")
    ] = False,
    keep_figures: Annotated[
        bool,
        typer.Option("--keep-figures", help="Keep the recorded floors and ceilings; they take long to play."),
    ] = False,
    blind: Annotated[
        bool, typer.Option("--blind", help="With --keep-figures: measure the blind floors all the same.")
    ] = False,
    levels: Annotated[
        bool, typer.Option("--levels", help="With --keep-figures: measure the difficulty levels all the same.")
    ] = False,
) -> None:
    """Measure every first-party environment (or those of --id), keep the rest, and write the file."""
    target = path or _find_file()
    check_writable("--path", target.resolve())
    registry = get_registry()
    recorded = _read_previous(target, keep_rest=bool(ids))
    chosen = _choose(registry, ids, old or not recorded)
    live = _measure(registry, chosen, "hashes")
    changes = find_behaviour_changes({env_id: recorded[env_id] for env_id in live if env_id in recorded}, live)
    if changes and not accept_behaviour_change:
        _print_lines(changes)
        raise UserError(
            f"{target} was not written: {len(changes)} environment(s) behave differently under the same id. "
            "Give each a new version, or state that it is meant: vlgym registry write --accept-behaviour-change"
        )
    played = {env_id: spec for env_id, spec in chosen.items() if not (keep_figures and env_id in recorded)}
    figures = _measure(registry, played, "figures")
    for env_id in chosen.keys() - played.keys():
        entry = recorded[env_id]
        figures[env_id] = {name: entry[name] for name in ("floor", "blind", "ceiling", "levels") if name in entry}
    _add_blind_floors(chosen if blind else played, figures)
    _add_levels(chosen if levels else played, figures)
    entries = {env_id: entry for env_id, entry in recorded.items() if ids or (not old and entry["spec"].replaced_by)}
    for env_id, measured in live.items():
        entries[env_id] = {**measured, **figures[env_id]}
    differences = compare_registries(recorded, entries)
    write_registry(entries, target, list_suites(registry))
    _print_lines([f"changed: {line}" for line in differences] if recorded else [])
    open_console().print(f"{target}: {len(entries)} environment(s) written, {len(chosen)} measured.")


@registry_app.command(name="check")
def check_file(
    path: FilePath = None,
    ids: Ids = None,
    old: Old = False,
    full: Annotated[bool, typer.Option("--full", help="Also play floors and ceilings again.")] = False,
) -> None:
    """Compare the file with the installed environments; exit status 1 and one line per difference when it is stale."""
    target = path or _find_file()
    registry = get_registry()
    recorded = read_registry(target)
    chosen = _choose(registry, ids, old, also=recorded)
    live = _measure(registry, chosen, "hashes")
    if full:
        figures = _measure(registry, chosen, "figures")
        _add_blind_floors(chosen, figures)
        _add_levels(chosen, figures)
        live = {env_id: {**live[env_id], **figures[env_id]} for env_id in live}
    recorded = {
        env_id: entry
        for env_id, entry in recorded.items()
        if (env_id in ids if ids else old or not entry["spec"].replaced_by)
    }
    problems = compare_registries(recorded, live)
    if not ids and read_suites(target) != list_suites(registry):
        problems.append("suites: the parts that the plugins contribute differ from the recorded ones.")
    if problems:
        _print_lines(problems)
        names = "".join(f" --id {env_id}" for env_id in ids or [])
        place = f" --path {path}" if path else ""
        open_console().print(f"{target}: {len(problems)} difference(s). Fix it: vlgym registry write{place}{names}")
        raise typer.Exit(1)
    open_console().print(f"{target}: {len(live)} environment(s) agree.")


def first_party_specs(registry: Registry) -> dict[str, EnvSpec]:
    """Return id -> spec of every installed environment of the project's own namespace, which the registry reserves."""
    return {env_id: spec for env_id, spec in registry.specs.items() if env_id.startswith(f"{FIRST_PARTY}/")}


def list_suites(registry: Registry) -> dict[str, dict[str, Any]]:
    """Return suite -> id -> its part, of the first-party plugins, as registry.yaml records them."""
    suites: dict[str, dict[str, Any]] = {}
    for record in registry.plugins:
        for part in record.suites:
            if normal_name(record.distribution) in registry.project:
                suites.setdefault(part.suite, {})[part.env_id] = part.to_dict()
    return suites


def _find_file() -> Path:
    """Return the package's registry.yaml, if the current directory is the repository's root.

    The link to it in the root is not used: a clone without symbolic links (Windows) has a text file there.
    """
    here = Path.cwd()
    try:
        project = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    except (OSError, ValueError):
        project = {}
    if project.get("name") != "vlgym":
        raise UserError(
            f"{here} is not the root of the vlgym repository, so it is unclear which {FILE_NAME} is meant. "
            f"Go there, or name the file: vlgym registry check --path {FILE_NAME}"
        )
    return Path("vlgym", FILE_NAME)


def _choose(registry: Registry, ids: list[str] | None, old: bool, also: Iterable[str] = ()) -> dict[str, EnvSpec]:
    specs = first_party_specs(registry)
    for env_id in ids or []:
        if env_id in also:
            continue
        if registry.get(env_id) and env_id not in specs:
            raise UserError(
                f"{env_id} is not first-party (namespace {FIRST_PARTY}/), so it does not belong in {FILE_NAME}."
                f"{nearest(env_id, specs)}"
            )
    if ids:
        return {env_id: spec for env_id, spec in specs.items() if env_id in ids}
    return {env_id: spec for env_id, spec in specs.items() if old or not spec.replaced_by}


def _read_previous(target: Path, *, keep_rest: bool) -> dict[str, dict[str, Any]]:
    """Return what the file holds; nothing when there is none, or when it is malformed: all is written again."""
    if not target.exists():
        return {}
    try:
        return read_registry(target)
    except RegistryFileError as error:
        if keep_rest:
            raise
        open_console(stderr=True).print(f"{error} It is written again, without a comparison of behaviour.")
        return {}


def _measure(registry: Registry, specs: dict[str, EnvSpec], what: str) -> dict[str, dict[str, Any]]:
    from ..testing import count_episodes, measure_figures, measure_hashes

    measured = {}
    with open_progress(open_console(stderr=True)) as progress:
        task = progress.add_task(what, total=len(specs))
        for env_id, spec in specs.items():
            if what == "hashes":
                measured[env_id] = measure_hashes(spec, registry.owner[env_id])
            else:
                episodes = count_episodes(spec) * (1 if spec.oracle == "none" else 2)
                with counting(progress, f"{spec.title}, episodes", episodes) as advance:
                    measured[env_id] = measure_figures(spec, advance)
            progress.advance(task)
    return measured


def _add_blind_floors(specs: dict[str, EnvSpec], figures: dict[str, dict[str, Any]]) -> None:
    from ..testing import measure_blind_floor

    with open_progress(open_console(stderr=True)) as progress:
        task = progress.add_task("blind floors", total=len(specs))
        for env_id, spec in specs.items():
            figures[env_id]["blind"] = measure_blind_floor(spec, figures[env_id]["floor"])
            progress.advance(task)


def _add_levels(specs: dict[str, EnvSpec], figures: dict[str, dict[str, Any]]) -> None:
    from ..testing import measure_levels

    for env_id, spec in specs.items():
        figures[env_id].pop("levels", None)
        if spec.levels:
            figures[env_id]["levels"] = measure_levels(spec)


def _print_lines(lines: list[str]) -> None:
    console = open_console()
    for line in lines:
        console.print(line)
