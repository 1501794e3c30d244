"""Finding and loading plugins, each in isolation: a broken one never breaks the rest.

A plugin is a distribution with an entry point in the group `vlgym`, which names a module of hook
implementations. `VLGYM_PLUGINS=none` loads nothing; `VLGYM_PLUGINS=cards,vlgym-miniworld` loads
those only, named by entry point or by distribution.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from itertools import chain
from typing import Any

import pluggy

from ..env.spec import CONTRACT, EnvSpec
from ..errors import PluginError, nearest, plain_line
from . import hookspecs
from .suites import SuitePart

GROUP = "vlgym"
SWITCH = "VLGYM_PLUGINS"


@dataclass
class PluginRecord:
    """One plugin and the result of loading it.

    Attributes:
        error: `None`, or one line that says what failed.
        unfinished: someone imported the plugin before vlgym; it is half loaded: look later.
    """

    name: str
    distribution: str
    version: str
    specs: tuple[EnvSpec, ...] = ()
    suites: tuple[SuitePart, ...] = ()
    policies: dict[str, Callable[..., Any]] = field(default_factory=dict)
    curricula: dict[str, Callable[..., Any]] = field(default_factory=dict)
    error: str | None = None
    enabled: bool = True
    unfinished: bool = False


def find_plugins() -> list[tuple[str, str, str, Any]]:
    """Return (name, distribution, version, entry point) of every plugin, without importing any."""
    plugins = {}
    for point in metadata.entry_points(group=GROUP):
        assert point.dist is not None
        name, version = plain_line(point.dist.name, 80), plain_line(point.dist.version, 40)
        plugins[(point.name, name)] = (plain_line(point.name), name, version, point)
    return [plugins[key] for key in sorted(plugins)]


def load_plugins(
    candidates: Iterable[tuple[str, str, str, Any]] | None = None, switch: str | None = None
) -> list[PluginRecord]:
    """Load every plugin of `candidates`, by default all, that `VLGYM_PLUGINS` or `switch` allows."""
    allowed = _read_switch(switch)
    records = []
    for name, distribution, version, point in find_plugins() if candidates is None else candidates:
        record = PluginRecord(name, distribution, version)
        records.append(record)
        if allowed is not None and not _names(record) & allowed:
            record.enabled = False
            continue

        # A plugin may fail in any way; it must not take the others with it.
        try:
            with contextlib.redirect_stdout(sys.stderr):
                _load(record, point)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            record.specs, record.suites, record.policies, record.curricula = (), (), {}, {}
            message = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
            record.error = plain_line(message).rstrip(": ")
    return records


def find_misspelt(records: Iterable[PluginRecord], switch: str | None = None) -> list[str]:
    """Return one line for each name in `VLGYM_PLUGINS` (or `switch`) of no installed plugin."""
    wanted = _read_switch(switch) or set()
    names = {name for record in records for name in _names(record)}
    there = ", ".join(sorted(record.name for record in records)) or "none is installed"
    return [
        f"{SWITCH} names {name!r}, which is no installed plugin ({there}).{nearest(name, sorted(names))}"
        for name in sorted(wanted - names)
    ]


def _names(record: PluginRecord) -> set[str]:
    """Return the names of a plugin that `VLGYM_PLUGINS` accepts."""
    return {record.name, record.distribution, record.distribution.removeprefix("vlgym-")}


def _read_switch(switch: str | None) -> set[str] | None:
    """Return the names in a value of `VLGYM_PLUGINS`; `None` where it allows all."""
    value = os.environ.get(SWITCH, "") if switch is None else switch
    names = {item.strip() for item in value.split(",") if item.strip()}
    return None if not value.strip() else set() if names == {"none"} else names


def _load(record: PluginRecord, point: Any) -> None:
    module = point.load()
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        record.unfinished = True
        return

    # pluggy passes over hooks that it does not know, so a misspelt one is refused here.
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    manager.register(module)
    _refuse_unknown_hooks(module)

    # An environment of another contract would fail in the middle of an episode.
    specs = list(chain(*manager.hook.vlgym_envs()))
    for spec in specs:
        if spec.contract != CONTRACT:
            raise PluginError(
                f"{spec.id} was written for contract {spec.contract}, this vlgym has {CONTRACT}; "
                "install versions of vlgym and the plugin that belong together."
            )
    record.specs = tuple(sorted(specs, key=lambda spec: spec.id))
    parts = chain(*manager.hook.vlgym_suites())
    record.suites = tuple(sorted(parts, key=lambda part: (part.suite, part.env_id)))
    for policies in manager.hook.vlgym_policies():
        record.policies.update(policies)
    for curricula in manager.hook.vlgym_curricula():
        record.curricula.update(curricula)


def _refuse_unknown_hooks(module: Any) -> None:
    known = [name for name in dir(hookspecs) if name.startswith("vlgym_")]
    for name in dir(module):
        marked = getattr(getattr(module, name, None), "vlgym_impl", None)
        wrong = marked is not None and (marked.get("specname") or name) not in known
        if wrong or (name.startswith("vlgym_") and callable(getattr(module, name)) and name not in known):
            raise PluginError(f"unknown hook {name!r}; the hooks are {', '.join(known)}.{nearest(name, known)}")
        if name in known and marked is None and callable(getattr(module, name)):
            raise PluginError(f"{name} lacks the @hookimpl decorator (from vlgym import hookimpl).")
