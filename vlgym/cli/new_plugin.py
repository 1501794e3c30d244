"""`vlgym new-plugin`: a pip package with one environment, ready to be changed into your own."""

import datetime
import keyword
import re
import sys
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated, Any

from typer import Argument, Option

from .. import __version__
from ..errors import UserError
from ..files import place_folder, write_whole
from ..registry import FIRST_PARTY, get_registry, normal_name
from ..registry.versions import find_version
from .console import open_console

WINDOWS = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")
PLUGIN_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MOST_LETTERS = 40

OWN_VALUES: dict[str, Any] = {
    "summary": "Walk to the red square on a board.", "max_turns": 10, "reward_range": "(0.0, 1.0)",
    "success_rule": "The player stands on the flag's square.", "image_size": "(140, 140)",
    "skills": '"navigation", "perception"', "oracle": "exact", "random_success_below": "0.5",
}  # fmt: skip
GAME_VALUES: dict[str, Any] = {
    **OWN_VALUES, "summary": "Take one, two or three stones in turn; who takes the last one wins.", "max_turns": 8,
    "reward_range": "(-1.0, 1.0)", "success_rule": "This seat has taken the last stone.",
    "skills": '"several agents",', "image_size": "(112, 224)", "random_success_below": "0.8",
    "kit": "GameConformance", "promise": "\n    oracle_success=0.85,  # who begins at a multiple of four may lose",
}  # fmt: skip

COMMON_TEMPLATES = {
    "pyproject.toml.in": "pyproject.toml", "README.md.in": "README.md", "LICENSE.in": "LICENSE",
    "gitignore.in": ".gitignore", "workflow.yml.in": ".github/workflows/test.yml",
    "init.py.in": "src/$package/__init__.py", "plugin.py.in": "src/$package/plugin.py",
    "test_contract.py.in": "tests/test_contract.py",
}  # fmt: skip


def check_name(name: str) -> None:
    """Raise a `UserError` if a plugin may not have a name."""
    if not PLUGIN_NAME.fullmatch(name) or len(name) > MOST_LETTERS:
        raise UserError(
            f"{name!r} is not a name for a plugin: words of small letters and digits, joined by '-', at most "
            f"{MOST_LETTERS} letters in all, the first one no digit; for example tea-room."
        )

    # The name must be free as a module, a folder, a distribution and a namespace of ids.
    registry, distribution = get_registry(), f"vlgym-{name}"
    known = {normal_name(entry["distribution"]) for entry in registry.known.values()}
    namespaces = {env_id.partition("/")[0] for env_id in registry.specs}
    reasons = {
        f"{name!r} is taken": keyword.iskeyword(name) or name in (FIRST_PARTY, "plugin"),
        f"{name!r} is a module of Python's standard library": name.replace("-", "_") in sys.stdlib_module_names,
        f"{name!r} is the name of a device on Windows, where no folder can have it": WINDOWS.fullmatch(name),
        f"{distribution} is a distribution that exists already": distribution in known,
        f"Ids of {name}/ are installed already": name in namespaces,
        f"{name} is installed here": find_version(name),
        f"{distribution} is installed here": find_version(distribution),
    }
    for reason, holds in reasons.items():
        if holds:
            raise UserError(f"{reason}; choose another name.")


def _fill(folder: Path, wanted: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Write the templates, their names filled in, too."""
    source = resources.files("vlgym") / "templates" / "plugin"
    for template, name in wanted.items():
        path = folder / Template(name).substitute(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template((source / template).read_text(encoding="utf-8")).substitute(values)
        write_whole(path, text)


def new_plugin(
    name: Annotated[str, Argument(metavar="NAME",
        help="Name of the plugin, for example tea-room.")],
    multi_agent: Annotated[bool, Option("--multi-agent",
        help="Write a game of two agents (docs/write-a-plugin.md).")] = False,
    out: Annotated[Path, Option(help="Parent of the new folder vlgym-NAME.")] = Path("."),
) -> None:  # fmt: skip
    """Write a pip package with an environment, its card, oracle and tests that passes `vlgym check` as it is."""
    check_name(name)
    title = "".join(word.capitalize() for word in name.split("-"))
    values: dict[str, Any] = {
        "name": name, "distribution": f"vlgym-{name}", "package": f"vlgym_{name.replace('-', '_')}",
        "promise": "", "kit": "EnvConformance", "version": ".".join(__version__.split(".")[:2]), "cls": title,
        "env_id": f"{name}/{title}-v0", "year": datetime.date.today().year,
    }  # fmt: skip
    kind, settings = ("game", GAME_VALUES) if multi_agent else ("environment", OWN_VALUES)
    values |= settings
    templates = {
        **COMMON_TEMPLATES, f"{kind}.py.in": "src/$package/environment.py",
        f"test_{kind}.py.in": "tests/test_environment.py",
    }  # fmt: skip

    # The folder appears whole, or not at all.
    folder = out / values["distribution"]
    if folder.exists():
        raise UserError(f"{folder} exists already; take another name, or another place with --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".new-plugin-") as made:
            _fill(Path(made) / "plugin", templates, values)
            place_folder(Path(made) / "plugin", folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); choose another place with --out.") from None

    # Next steps, in their order.
    env_id = values["env_id"]
    lines = (
        f"{folder} is written. Next:", f"  pip install -e {folder}", f"  vlgym play {env_id}",
        f"  vlgym check {env_id}", f"  (cd {folder} && pytest)",
        f"  python -m baselines.vldac --env {env_id}",
        f"The rules are in {folder / 'src'}; docs/write-a-plugin.md explains them.",
    )  # fmt: skip
    open_console().print("\n".join(lines), soft_wrap=True)
