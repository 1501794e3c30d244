"""All hooks of vlgym, which a plugin implements in the module of its `vlgym` entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..env.spec import EnvSpec
    from ..types import Policy
    from .suites import SuitePart

hookspec = pluggy.HookspecMarker("vlgym")
hookimpl = pluggy.HookimplMarker("vlgym")


@hookspec
def vlgym_envs() -> list[EnvSpec]:
    """Return the specs of the plugin's environments. Must not import environment code."""
    return []


@hookspec
def vlgym_suites() -> list[SuitePart]:
    """Return the plugin's parts of named benchmarks. Must not import environment code."""
    return []


@hookspec
def vlgym_policies() -> Mapping[str, Callable[..., Policy]]:
    """Return the plugin's policies: name to factory. `vlgym eval --policy NAME:ARGUMENT` calls one.

    The factory gets the text behind the colon, which may be empty, and by name those options of the
    command line that were given and that it takes: `seed`, `temperature`, `base_url`, ..., and any
    `--policy-arg NAME=VALUE`; others are refused. It raises `vlgym.errors.UserError` for problems
    of the user, and returns a `vlgym.types.Policy`. It alone may import a learner's libraries.
    """
    return {}


@hookspec
def vlgym_curricula() -> Mapping[str, Callable[..., Any]]:
    """Return the plugin's samplers of training levels: name to subclass of `Curriculum`.

    Learners call one for their option `--curriculum NAME:ARGUMENT`.
    """
    return {}
