"""Finding and loading plugins, each under guard: a broken one is recorded and reported, and never breaks the rest.

A plugin is a distribution with an entry point in the group `vlgym`; the entry point names a module that holds hook
implementations.
Environment code is not imported here. `VLGYM_PLUGINS=none` loads nothing; `VLGYM_PLUGINS=cards,vlgym-miniworld` loads
those only, named by entry point or by distribution.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import pluggy

from . import hookspecs
from .errors import PluginError, nearest, plain_line
from .spec import CONTRACT, EnvSpec
from .suites import SuitePart

GROUP = "vlgym"
SWITCH = "VLGYM_PLUGINS"

_POLICY_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass
class PluginRecord:
    """One plugin and what became of it.

    Attributes:
        name: entry point name.
        distribution: distribution that holds it.
        version: version of that distribution.
        specs: its environments; empty after a failure.
        suites: its parts of named benchmarks.
        policies: its policies, name to factory.
        error: `None`, or one line that says what failed.
        enabled: `False` when `VLGYM_PLUGINS` leaves it out.
        unfinished: the module is being imported right now (someone imported the plugin before vlgym); look again later.
    """

    name: str
    distribution: str
    version: str
    specs: tuple[EnvSpec, ...] = ()
    suites: tuple[SuitePart, ...] = ()
    policies: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    error: str | None = None
    enabled: bool = True
    unfinished: bool = False


def find_plugins() -> list[tuple[str, str, str, Any]]:
    """Return (name, distribution, version, entry point) of every installed plugin, sorted, without importing any."""
    found = {}
    for point in metadata.entry_points(group=GROUP):
        assert point.dist is not None
        name, version = plain_line(point.dist.name, 80), plain_line(point.dist.version, 40)
        found[(point.name, name)] = (plain_line(point.name), name, version, point)
    return [found[key] for key in sorted(found)]


def load_plugins(
    candidates: Iterable[tuple[str, str, str, Any]] | None = None, switch: str | None = None
) -> list[PluginRecord]:
    """Load every plugin that the switch allows.

    Args:
        candidates: as from `find_plugins` (the default).
        switch: value of `VLGYM_PLUGINS`; the environment variable by default.
    """
    allowed = _parse_switch(os.environ.get(SWITCH) if switch is None else switch)
    records = []
    for name, distribution, version, point in find_plugins() if candidates is None else candidates:
        record = PluginRecord(name, distribution, version)
        if allowed is not None and not _names(record) & allowed:
            record.enabled = False
        else:
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    _load(record, point)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a plugin may fail in any way; it must not take the others with it
                record.specs, record.suites, record.policies = (), (), {}
                record.error = _describe_error(error)
        records.append(record)
    return records


def _describe_error(error: BaseException) -> str:
    """Return one printable line that says what a plugin did."""
    if isinstance(error, PluginError):
        return plain_line(str(error))
    if isinstance(error, SystemExit):
        return f"the module exits at import ({plain_line(str(error))})"
    return plain_line(f"{type(error).__name__}: {error}").rstrip(": ")


def find_misspelt(records: Iterable[PluginRecord], switch: str | None = None) -> list[str]:
    """Return one line for each name in `VLGYM_PLUGINS` (or `switch`) that is no installed plugin's."""
    wanted = _parse_switch(os.environ.get(SWITCH) if switch is None else switch) or set()
    names = {name for record in records for name in _names(record)}
    there = ", ".join(sorted(record.name for record in records)) or "none is installed"
    return [
        f"{SWITCH} names {name!r}, which is no installed plugin ({there}).{nearest(name, sorted(names))}"
        for name in sorted(wanted - names)
    ]


def _names(record: PluginRecord) -> set[str]:
    """What `VLGYM_PLUGINS` may call a plugin."""
    return {record.name, record.distribution, record.distribution.removeprefix("vlgym-")}


def _parse_switch(value: str | None) -> set[str] | None:
    if value is None or not value.strip():
        return None
    names = {item.strip() for item in value.split(",") if item.strip()}
    return set() if names == {"none"} else names


def _load(record: PluginRecord, point: Any) -> None:
    module = point.load()
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        record.unfinished = True
        return
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    _refuse_unknown_hooks(module)
    specs = _read_specs(manager)
    record.suites = _read_suites(manager)
    record.policies = _read_policies(manager)
    record.specs = specs


def _refuse_unknown_hooks(module: Any) -> None:
    known = [name for name in dir(hookspecs) if name.startswith("vlgym_")]
    for name in dir(module):
        marked = getattr(getattr(module, name, None), "vlgym_impl", None)
        wrong = marked is not None and (marked.get("specname") or name) not in known
        if wrong or (name.startswith("vlgym_") and callable(getattr(module, name)) and name not in known):
            raise PluginError(f"unknown hook {name!r}; the hooks are {', '.join(known)}.{nearest(name, known)}")
        if name in known and marked is None and callable(getattr(module, name)):
            raise PluginError(f"{name} lacks the @hookimpl decorator (from vlgym.hookspecs import hookimpl).")


def _read_specs(manager: pluggy.PluginManager) -> tuple[EnvSpec, ...]:
    specs: list[EnvSpec] = []
    for result in manager.hook.vlgym_envs():
        if not isinstance(result, (list, tuple)) or not all(isinstance(item, EnvSpec) for item in result):
            raise PluginError(f"vlgym_envs must return a list of EnvSpec, got {type(result).__name__}.")
        specs.extend(result)
    for spec in specs:
        if spec.contract != CONTRACT:
            raise PluginError(
                f"{spec.id} was written for contract {spec.contract}, this vlgym has {CONTRACT}; "
                "install versions of vlgym and the plugin that belong together."
            )
    duplicates = sorted({spec.id for spec in specs if sum(other.id == spec.id for other in specs) > 1})
    if duplicates:
        raise PluginError(f"the plugin lists {', '.join(duplicates)} twice.")
    return tuple(sorted(specs, key=lambda spec: spec.id))


def _read_suites(manager: pluggy.PluginManager) -> tuple[SuitePart, ...]:
    parts: list[SuitePart] = []
    for result in manager.hook.vlgym_suites():
        if not isinstance(result, (list, tuple)) or not all(isinstance(item, SuitePart) for item in result):
            raise PluginError(f"vlgym_suites must return a list of SuitePart, got {type(result).__name__}.")
        parts.extend(result)
    return tuple(sorted(parts, key=lambda part: (part.suite, part.env_id)))


def _read_policies(manager: pluggy.PluginManager) -> dict[str, Callable[..., Any]]:
    policies: dict[str, Callable[..., Any]] = {}
    for result in manager.hook.vlgym_policies():
        if not isinstance(result, Mapping) or not all(callable(factory) for factory in result.values()):
            raise PluginError(f"vlgym_policies must return a dict of name to factory, got {type(result).__name__}.")
        for name in result:
            if not isinstance(name, str) or not _POLICY_NAME.fullmatch(name):
                raise PluginError(f"vlgym_policies: name {name!r} must be lower case letters, digits and hyphens.")
        policies.update(result)
    return policies
