"""All hooks of vlgym. A plugin implements them in the module its `vlgym` entry point names.

Another hook is added only together with a plugin that needs it.
"""

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
    """Return the plugin's parts of named benchmarks (such as `magebench-mini`). Must not import environment code."""
    return []


@hookspec
def vlgym_policies() -> Mapping[str, Callable[..., Policy]]:
    """Return the plugin's policies: name to factory. `vlgym eval` calls one for its option `--policy NAME:ARGUMENT`.

    The factory gets the text behind the colon as its one positional argument, which may be empty, and those options
    of the command line that were given and that it takes, by name: `seed`, `temperature`, `max_tokens`, `base_url`,
    ..., and any `--policy-arg NAME=VALUE`. Others are refused before. It raises `vlgym.errors.UserError` for problems
    that a user can fix, and returns a `vlgym.play.policies.Policy`. It alone may import a learner's libraries.
    """
    return {}


@hookspec
def vlgym_curricula() -> Mapping[str, Callable[..., Any]]:
    """Return the plugin's samplers of training levels: name to subclass of `vlgym.play.curriculum.Curriculum`, for the
    learners' option `--curriculum NAME:ARGUMENT`."""
    return {}
