"""`vlgym doctor`: versions, plugins and errors, clashes, registry.yaml, missing system packages.

Makes every environment of registry.yaml, without playing it, to compare card, prompt and parser.
"""

import platform
import shutil
import subprocess
from collections.abc import Sequence
from typing import Annotated

import typer
from typer import Option

from ..registry import Registry, get_registry, list_problems
from ..registry.installing import how_to_install, how_to_install_all
from ..registry.recorded import compare_recorded
from ..registry.registry_file import find_edit
from ..registry.versions import find_version
from .console import open_console

SHOWN_PACKAGES = ("vlgym", "gymnasium", "numpy", "pillow", "pluggy", "torch", "transformers")


def doctor(
    apt: Annotated[bool, Option("--apt", help="Print only the missing Debian packages, in one line.")] = False,
) -> None:
    """Say what is installed, what is broken, and what fixes it; exit status 1 when something is broken."""
    registry, needed = get_registry(), dict[str, list[str]]()
    for env_id, spec in registry.specs.items():
        for package in spec.system_requirements:
            needed.setdefault(package, []).append(env_id)
    missing = _find_missing(sorted(needed))
    if apt:
        typer.echo(" ".join(missing))
        return
    problems = [*list_problems(registry), *_print_installed(registry)]
    if not registry.file_error and (edit := find_edit()):
        problems.append(edit)

    # A missing package is told, but breaks nothing: a library may have come by another way.
    console = open_console()
    for package in missing:
        more = f" and {len(needed[package]) - 1} more" if len(needed[package]) > 1 else ""
        users = f"needed by {needed[package][0]}{more}"
        console.print(f"not installed by dpkg: apt-get install {package} ({users})")
    console.print()
    for problem in problems:
        console.print(f"broken: {problem}", style="red")
    if problems:
        raise typer.Exit(1)
    console.print("Nothing is broken.")


def _print_installed(registry: Registry) -> list[str]:
    """Print versions, plugins and the state of registry.yaml; return a line for each difference."""
    console = open_console()
    console.print("Versions", style="bold")
    versions = {package: find_version(package) for package in SHOWN_PACKAGES}
    for name, version in {"python": platform.python_version(), **versions}.items():
        console.print(f"  {name:<13} {version or 'not installed'}")
    if None in (versions["torch"], versions["transformers"]):
        console.print(f"  the learners need both: {how_to_install('vlgym[train]')}")

    # A plugin that failed or is switched off is listed, too.
    console.print("Plugins", style="bold")
    for record in registry.plugins:
        owner = record.distribution
        count = sum(owner not in registry.refused.get(spec.id, ()) for spec in record.specs)
        policies = f", policies: {', '.join(sorted(record.policies))}" if record.policies else ""
        state = "loaded" if record.enabled else "switched off"
        status = f"{state}, {count} environment(s){policies}"
        status = f"failed, {record.error}" if record.error else status
        style = "red" if record.error else None
        console.print(f"  {record.name} ({owner} {record.version}): {status}", style=style)
    if not registry.plugins:
        console.print(f"  none installed; for all of them: {how_to_install_all()}")

    # The environments as they are here, against the file.
    console.print("registry.yaml", style="bold")
    absent = ", ".join(sorted(registry.known.keys() - registry.specs.keys()))
    summary = registry.file_error or f"{len(registry.known)} environment(s)"
    console.print(f"  {summary}{f'; not usable here: {absent}' if absent else ''}")
    env_ids = [env_id for env_id in registry.current() if env_id in registry.known]
    compared = {env_id: compare_recorded(registry, env_id) for env_id in env_ids}
    same = sum(bool(each.live) and not each.differences for each in compared.values())
    console.print(f"  card, prompt and parser as recorded: {same} environment(s)")
    for env_id, comparison in compared.items():
        if comparison.error:
            console.print(f"  not compared: {env_id} cannot be made here: {comparison.error}")
    lines = [line for comparison in compared.values() for line in comparison.differences]
    return [f"{line} Install what belongs together, or: vlgym registry" for line in lines]


def _find_missing(packages: Sequence[str]) -> list[str]:
    """Return the Debian packages that dpkg does not have; none without dpkg."""
    program = shutil.which("dpkg-query")
    if program is None or not packages:
        return []
    command = [program, "--show", "--showformat=${Package} ${db:Status-Status}\n", *packages]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    return [package for package in packages if f"{package} installed" not in lines]
