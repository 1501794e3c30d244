"""All hooks of vlgym. A plugin implements them in the module its `vlgym` entry point names.

Two hooks to begin with; another one is added only together with a plugin that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import typer

    from .spec import EnvSpec

hookspec = pluggy.HookspecMarker("vlgym")
hookimpl = pluggy.HookimplMarker("vlgym")


@hookspec
def vlgym_envs() -> list[EnvSpec]:
    """Return the specs of the plugin's environments. Must not import environment code."""
    return []


@hookspec
def vlgym_commands(app: typer.Typer) -> None:
    """Add commands to the `vlgym` command line."""
