"""id -> spec: installed; broken; known but not installed; unknown, with the nearest ids."""

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..env.spec import ID_PATTERN, EnvSpec
from ..errors import NotInstalledError, PluginError, RegistryFileError, UnknownEnvError, nearest
from ..terminal import say_error
from .installing import how_to_install
from .plugins import SWITCH, PluginRecord, find_misspelt, load_plugins
from .registry_file import read_registry
from .suites import SuitePart
from .versions import read_requirements

FIRST_PARTY = "vlgym"  # namespace of this project's ids

OWNERSHIP = (
    "ids of vlgym/ belong to the distributions that registry.yaml names, and new ones to this project's; "
    "others use another namespace."
)


@dataclass(frozen=True)
class Registry:
    """All environments of the loaded plugins, and what is known of the others.

    Attributes:
        specs: id -> spec of everything that `make` can build.
        owner: id -> distribution.
        clashes: id -> the distributions that claim it; such an id cannot be made.
        refused: id -> distributions without a right to it: ids of `vlgym/` are this project's.
        project: this project's distributions, in normal form (see `normal_name`).
    """

    plugins: tuple[PluginRecord, ...]
    specs: dict[str, EnvSpec]
    owner: dict[str, str]
    clashes: dict[str, tuple[str, ...]]
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    file_error: str | None = None
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    project: frozenset[str] = frozenset()

    def get(self, env_id: str) -> EnvSpec:
        """Return the spec of an id that can be made.

        Raises:
            PluginError: two plugins claim the id, one that may not, or its plugin failed to load.
            NotInstalledError: a first-party id's distribution is not installed, or switched off.
            UnknownEnvError: anything else; the message names the nearest ids.
        """
        if env_id in self.specs:
            return self.specs[env_id]

        # An id that someone knows fails for a reason that the user can remove.
        if env_id in self.clashes:
            owners = self.clashes[env_id]
            raise PluginError(
                f"{env_id} is claimed by two plugins: {' and '.join(owners)}. "
                f"Uninstall one, or load one only: {SWITCH}={owners[0]}."
            )
        if env_id in self.known:
            self._explain_known(env_id)
        if env_id in self.refused:
            claimants = " and ".join(self.refused[env_id])
            raise PluginError(f"{env_id} is claimed by {claimants}, refused: {OWNERSHIP} See: vlgym doctor.")

        # Others are mistyped, of another version, or of a plugin that is broken.
        if ID_PATTERN.match(env_id) is None:
            raise UnknownEnvError(
                f"{env_id!r} is not an environment id; ids look like namespace/Name-vN, for example vlgym/OneRoom-v0."
                f"{nearest(env_id, self.specs)}"
            )
        name = env_id.rpartition("-v")[0]
        if versions := ", ".join(sorted(each for each in self.specs if each.rpartition("-v")[0] == name)):
            raise UnknownEnvError(f"{env_id} does not exist in that version; there is {versions}.")
        broken = "; ".join(f"{each.distribution}: {each.error}" for each in self.plugins if each.error)
        hint = f" Broken plugin(s), which might hold it: {broken}" if broken else ""
        near = nearest(env_id, sorted({*self.specs, *self.known}))
        raise UnknownEnvError(f"No environment {env_id!r} is known.{near} All ids: vlgym list.{hint}")

    def current(self) -> dict[str, EnvSpec]:
        """Return id -> spec of the installed environments that no newer version replaces."""
        return {env_id: spec for env_id, spec in self.specs.items() if not spec.replaced_by}

    def collect(self, kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return all `policies` or `curricula`; `PluginError` where two have one name."""
        named, owners = dict(own), dict.fromkeys(own, "vlgym itself")
        for record in self.plugins:
            for name, factory in getattr(record, kind).items():
                if name in named:
                    both = f"{owners[name]} and by {record.distribution}"
                    raise PluginError(f"The name {name!r} is claimed by {both} ({kind}); uninstall one.")
                named[name], owners[name] = factory, record.distribution
        return named

    def _explain_known(self, env_id: str) -> None:
        distribution = self.known[env_id]["distribution"]
        record = next((each for each in self.plugins if each.distribution == distribution), None)
        place, remedy = f"{env_id} lives in {distribution}", how_to_install(distribution)
        if record is None:
            raise NotInstalledError(f"{place}, which is not installed: {remedy}")
        if record.error:
            raise PluginError(f"{place}, which failed to load: {record.error} See: vlgym doctor.")
        if not record.enabled:
            raise NotInstalledError(f"{place}, which {SWITCH} leaves out; unset {SWITCH} or add it.")
        raise NotInstalledError(f"{place}, but version {record.version}, which is installed, lacks it: {remedy}")

    def suite(self, name: str) -> tuple[SuitePart, ...]:
        """Return the parts of a suite, sorted by id; `UnknownEnvError` if there are none."""
        every = [part for record in self.plugins for part in record.suites]
        parts = [part for part in every if part.env_id in self.specs]
        chosen = [part for part in parts if part.suite == name]
        if not chosen:
            names = sorted({part.suite for part in parts})
            there = f"there are {', '.join(names)}" if names else "the installed plugins contribute none"
            raise UnknownEnvError(f"No suite {name!r}; {there}.{nearest(name, names)}")
        return tuple(sorted(chosen, key=lambda part: part.env_id))


def build_registry(
    records: list[PluginRecord], known: dict[str, dict[str, Any]] | None = None,
    file_error: str | None = None, extras: Iterable[str] = (),
) -> Registry:  # fmt: skip
    """Combine loaded plugins; an id that two of them claim is set aside, and both are named.

    An id of `vlgym/` goes to the distribution in registry.yaml. A new one may be of any
    distribution of this project: those in registry.yaml and in `extras`. A name that begins
    with vlgym- proves nothing, since anyone may publish one.
    """
    known = known or {}
    recorded = {env_id: normal_name(entry["distribution"]) for env_id, entry in known.items()}
    project = frozenset({*map(normal_name, extras), *recorded.values()})
    claims: dict[str, list[tuple[str, EnvSpec]]] = {}
    refused: dict[str, tuple[str, ...]] = {}
    for record in records:
        for spec in record.specs:
            owners = {recorded[spec.id]} if spec.id in recorded else project
            if spec.namespace == FIRST_PARTY and normal_name(record.distribution) not in owners:
                refused[spec.id] = (*refused.get(spec.id, ()), record.distribution)
            else:
                claims.setdefault(spec.id, []).append((record.distribution, spec))

    # One claim makes an owner.
    specs, owner, clashes = {}, {}, {}
    for env_id in sorted(claims):
        if len(claims[env_id]) > 1:
            clashes[env_id] = tuple(distribution for distribution, _ in claims[env_id])
        else:
            owner[env_id], specs[env_id] = claims[env_id][0]
    return Registry(tuple(records), specs, owner, clashes, known, file_error, refused, project)


def normal_name(distribution: str) -> str:
    """Return a distribution's name in normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _list_extras() -> list[str]:
    """Return the distributions among vlgym's extras, where a new family is listed first."""
    names = (re.match(r"vlgym-[\w.-]+", line) for line in read_requirements("vlgym") if "extra" in line)
    return [match[0] for match in names if match]


def get_registry() -> Registry:
    """Load all plugins once per process; problems are one line each on standard error.

    >>> get_registry().get("vlgym/NumberLine-v1").max_turns
    20
    >>> get_registry().get("vlgym/NumbreLine-v1")
    Traceback (most recent call last):
        ...
    vlgym.errors.UnknownEnvError: No environment 'vlgym/NumbreLine-v1' is known. Nearest: vlgym/NumberLine-v1, ...
    """
    if any(record.unfinished for record in _load_registry().plugins):
        _load_registry.cache_clear()
    return _load_registry()


@functools.cache
def _load_registry() -> Registry:
    known, file_error = {}, None
    try:
        known = read_registry()
    except RegistryFileError as error:
        file_error = str(error)
    registry = build_registry(load_plugins(), known, file_error, _list_extras())
    for problem in list_problems(registry):
        say_error(f"vlgym: {problem}")
    return registry


def list_problems(registry: Registry) -> list[str]:
    """Return one line for each thing that is wrong with the installation."""
    problems = [
        f"plugin {record.name} ({record.distribution}) failed to load: {record.error}"
        for record in registry.plugins
        if record.error
    ]
    problems += [
        f"{env_id} is claimed by {' and '.join(owners)}; uninstall one, or load one only: {SWITCH}={owners[0]}"
        for env_id, owners in registry.clashes.items()
    ]

    # One line for each distribution, whatever the number of its ids.
    claimed: dict[str, list[str]] = {}
    for env_id in sorted(registry.refused):
        for distribution in registry.refused[env_id]:
            claimed.setdefault(distribution, []).append(env_id)
    for distribution in sorted(claimed):
        problems.append(f"{distribution} claims {', '.join(claimed[distribution])}, refused: {OWNERSHIP}")
    problems += find_misspelt(registry.plugins)
    return [*problems, registry.file_error] if registry.file_error else problems
