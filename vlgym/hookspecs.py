"""All hooks of vlgym. A plugin implements them in the module its `vlgym` entry point names.

Another hook is added only together with a plugin that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from .spec import EnvSpec
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
