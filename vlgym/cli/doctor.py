"""`vlgym doctor`: versions, plugins and why one failed, clashes, registry.yaml, system packages.

Makes every environment that registry.yaml knows, without playing it, to compare card, prompt and parser with the
recorded ones. Imports no torch.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ..registry import Registry, get_registry, list_problems
from ..registry.installing import how_to_install, how_to_install_all
from ..registry.plugins import PluginRecord
from ..registry.recorded import compare_recorded
from ..terminal import print_wrapped
from ..types import find_version
from .console import open_console, print_json
from .list_cmd import AsJson

PACKAGES = ("vlgym", "gymnasium", "numpy", "pillow", "pluggy", "torch", "transformers")


def doctor(
    as_json: AsJson = False,
    apt: Annotated[bool, typer.Option("--apt", help="Print only the missing Debian packages, in one line.")] = False,
) -> None:
    """Say what is installed, what is broken, and what fixes it; exit status 1 when something is broken."""
    if apt:
        found = _find_system_packages(_list_requirements(get_registry()))
        typer.echo(" ".join(package for package, there in found.items() if there is False))
        return
    findings = examine(get_registry())
    if as_json:
        print_json(findings)
    else:
        _print_findings(findings)
    if findings["problems"]:
        raise typer.Exit(1)


def examine(registry: Registry) -> dict[str, Any]:
    """Return versions, plugins, clashes, the state of registry.yaml, system packages, and one line for each problem."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions.update({package: find_version(package) for package in PACKAGES})
    problems = list_problems(registry)
    compared = {env_id: compare_recorded(registry, env_id) for env_id in registry.current() if env_id in registry.known}
    for found in compared.values():
        problems += [f"{line} Install what belongs together, or: vlgym registry write" for line in found.differences]
    needed = _list_requirements(registry)
    missing = sorted(set(registry.known) - set(registry.specs))
    return {
        "versions": versions,
        "plugins": [_describe_plugin(registry, record) for record in registry.plugins],
        "registry": {
            "error": registry.file_error,
            "known": len(registry.known),
            "not_installed": missing,
            "same": sorted(env_id for env_id, found in compared.items() if found.live and not found.differences),
            "not_compared": {env_id: found.error for env_id, found in compared.items() if found.error},
        },
        "system": {
            package: {"installed": there, "needed_by": needed[package]}
            for package, there in _find_system_packages(needed).items()
        },
        "problems": problems,
    }


def _describe_plugin(registry: Registry, record: PluginRecord) -> dict[str, Any]:
    state = "failed" if record.error else "loaded" if record.enabled else "switched off"
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "state": state,
        "error": record.error,
        "policies": sorted(record.policies),
        "environments": [
            spec.id for spec in record.specs if record.distribution not in registry.refused.get(spec.id, ())
        ],
    }


def _list_requirements(registry: Registry) -> dict[str, list[str]]:
    """Return Debian package -> ids of the installed environments that need it."""
    needed: dict[str, list[str]] = {}
    for env_id, spec in registry.specs.items():
        for package in spec.system_requirements:
            needed.setdefault(package, []).append(env_id)
    return dict(sorted(needed.items()))


def _find_system_packages(packages: Iterable[str]) -> dict[str, bool | None]:
    """Return whether dpkg has each package; `None` without dpkg.

    `False` need not mean that anything is broken: the library may have come by another way.
    """
    names, program = list(packages), shutil.which("dpkg-query")
    if program is None or not names:
        return dict.fromkeys(names)
    form = "--showformat=${Package} ${db:Status-Status}\n"
    done = subprocess.run([program, "--show", form, *names], capture_output=True, text=True, check=False)
    there = {line.removesuffix(" installed") for line in done.stdout.splitlines() if line.endswith(" installed")}
    return {name: name in there for name in names}


def _print_findings(findings: dict[str, Any]) -> None:
    console = open_console()
    console.print("Versions", style="bold")
    for name, version in findings["versions"].items():
        console.print(f"  {name:<13} {version or 'not installed'}")
    if None in (findings["versions"]["torch"], findings["versions"]["transformers"]):
        console.print(f"  the learners need both: {how_to_install('vlgym[train]')}")
    console.print("Plugins", style="bold")
    for plugin in findings["plugins"]:
        line = f"  {plugin['name']} ({plugin['distribution']} {plugin['version']}): {plugin['state']}"
        policies = f", policies: {', '.join(plugin['policies'])}" if plugin["policies"] else ""
        detail = plugin["error"] or f"{len(plugin['environments'])} environment(s){policies}"
        console.print(f"{line}, {detail}", style="red" if plugin["error"] else None)
    if not findings["plugins"]:
        console.print(f"  none installed; for all of them: {how_to_install_all()}")
    console.print("registry.yaml", style="bold")
    state = findings["registry"]
    absent = ", ".join(state["not_installed"])
    summary = state["error"] or f"{state['known']} environment(s)"
    console.print(f"  {summary}{f'; not usable here: {absent}' if absent else ''}")
    if state["same"]:
        console.print(f"  card, prompt and parser as recorded: {len(state['same'])} environment(s)")
    for env_id, error in state["not_compared"].items():
        console.print(f"  not compared: {env_id} cannot be made here: {error}")
    if findings["system"]:
        console.print("System packages", style="bold")
        there = [package for package, item in findings["system"].items() if item["installed"]]
        print_wrapped(console, [["  installed:", ", ".join(there)]] if there else [])
    for package, item in findings["system"].items():
        needed_by = item["needed_by"]
        more = f" and {len(needed_by) - 1} more" if len(needed_by) > 1 else ""
        words = {False: f"not installed by dpkg: apt-get install {package}", None: "unknown (no dpkg here)"}
        if not item["installed"]:
            console.print(f"  {package}: {words[item['installed']]} (needed by {needed_by[0]}{more})")
    console.print()
    for problem in findings["problems"]:
        console.print(f"broken: {problem}", style="red")
    if not findings["problems"]:
        console.print("Nothing is broken.")
