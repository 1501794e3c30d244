"""Installation commands of this project's distributions, the same on every page, list and error.

No package index has them yet. At the release set `RELEASED`; tests then name old pages.
"""

import importlib
import shlex
from pathlib import Path
from typing import Any

from ..errors import NotInstalledError

RELEASED = False
CORE = "vlgym"
CLONE = Path(__file__).parents[2]  # where this copy runs from; no clone has no folder `plugins`


def how_to_install(distribution: str, *, clone: Path = CLONE, here: Path | None = None) -> str:
    """Return the command that installs or updates a distribution of this project, and its folder.

    `distribution` is `vlgym`, a plugin's (`vlgym-cards`), or `vlgym[train]` with an extra. `here`
    is the folder that the user stands in; default the current one.
    """
    if RELEASED:
        return f"pip install --upgrade {shlex.quote(distribution)}"
    name, bracket, extras = distribution.partition("[")
    folder = "." if name == CORE else f"plugins/{name.removeprefix(CORE + '-')}"

    # Without a clone at hand the command says where it holds.
    if not ((clone / "plugins").is_dir() and (clone / folder / "pyproject.toml").is_file()):
        return f"in a clone of vlgym's repository: pip install -e {shlex.quote(folder + bracket + extras)}"
    if clone.resolve() != (here or Path.cwd()).resolve():
        folder = str(clone / folder)
    return f"pip install -e {shlex.quote(folder + bracket + extras)}"


def how_to_install_all(*, clone: Path = CLONE, here: Path | None = None) -> str:
    """Return the command that installs all plugins of this project."""
    if RELEASED:
        return "pip install 'vlgym[all]'"
    families = sorted(path.parent.name for path in clone.glob("plugins/*/pyproject.toml"))
    if not families:
        return "in a clone of vlgym's repository: make install"
    commands = [how_to_install(f"{CORE}-{family}", clone=clone, here=here) for family in families]
    return "pip install " + " ".join(command.removeprefix("pip install ") for command in commands)


def import_extra(module: str, extra: str, user: str) -> Any:
    """Import a module of an extra for `user`; `NotInstalledError` says how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != name:
            raise
        command = how_to_install(f"{CORE}[{extra}]")
        raise NotInstalledError(f"{user} needs {name}, which is not installed: {command}") from None
