"""`vlgym new-plugin`: a pip package with one environment, ready to be changed into your own."""

from __future__ import annotations

import datetime
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata, resources
from importlib.metadata import PackageNotFoundError, packages_distributions
from pathlib import Path
from string import Template
from typing import Annotated, Any

import gymnasium
import numpy as np
import typer

from .. import __version__
from ..errors import UserError, nearest
from ..registry import FIRST_PARTY, get_registry, normal_name
from .console import open_console

WINDOWS = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MOST_LETTERS, MOST_ACTIONS, MOST_TURNS, SEEN_STEPS = 40, 50, 200, 1000

OWN_VALUES: dict[str, Any] = {
    "summary": "Walk to the red square on a board.", "max_turns": 10, "reward_range": "(0.0, 1.0)",
    "success_rule": "The player stands on the flag's square.", "skills": '"navigation", "perception"',
    "image_size": "(140, 140)", "oracle": "exact", "random_success_below": "0.5",
}  # fmt: skip
GAME_VALUES: dict[str, Any] = {
    **OWN_VALUES, "summary": "Take one, two or three stones in turn; who takes the last one wins.", "max_turns": 8,
    "reward_range": "(-1.0, 1.0)", "success_rule": "This seat has taken the last stone.",
    "skills": '"several agents",', "image_size": "(112, 224)", "random_success_below": "0.8",
    "kit": "GameConformance", "promise": "\n    oracle_success=0.85,  # who begins at a multiple of four may lose",
}  # fmt: skip

WRAPPED_EXTRAS = {"classic_control": "classic-control", "toy_text": "toy-text", "box2d": "box2d", "mujoco": "mujoco"}
"""Folders of Gymnasium's own environments, and the extra that brings what they draw with."""

COMMON = {
    "pyproject.toml.in": "pyproject.toml", "README.md.in": "README.md", "LICENSE.in": "LICENSE",
    "gitignore.in": ".gitignore", "workflow.yml.in": ".github/workflows/test.yml",
    "init.py.in": "src/$package/__init__.py", "plugin.py.in": "src/$package/plugin.py",
    "test_contract.py.in": "tests/test_contract.py",
}  # fmt: skip
OWN = {"environment.py.in": "src/$package/environment.py", "test_environment.py.in": "tests/test_environment.py"}
GAME = {"game.py.in": "src/$package/environment.py", "test_game.py.in": "tests/test_environment.py"}
WRAPPED = {"wrapped.py.in": "src/$package/environment.py", "test_wrapped.py.in": "tests/test_environment.py"}


def write_plugin(
    name: str, parent: Path, wrap: str | None = None, actions: Sequence[str] = (), *, multi_agent: bool = False
) -> tuple[Path, str]:
    """Write a plugin's folder, `vlgym-NAME`; return it, and the id of its environment.

    Args:
        name: words of small letters and digits, joined by `-`.
        parent: where the folder is made.
        wrap: id of a Gymnasium environment with discrete actions; by default the plugin has its own rules.
        actions: words for the actions of `wrap`, from the first to the last; by default `action 0`, `action 1`, ...
        multi_agent: write a game of two agents.

    Raises:
        UserError: a name that cannot be taken, a folder that exists or cannot be made, or an environment that cannot
            be wrapped.
    """
    check_name(name)
    if actions and wrap is None:
        raise UserError("--actions names the actions of the environment that --wrap names; give both.")
    if multi_agent and wrap is not None:
        raise UserError("--multi-agent writes a new game, --wrap takes one of Gymnasium's; give one of them.")
    title = "".join(word.capitalize() for word in name.split("-"))
    values: dict[str, Any] = {
        "name": name, "namespace": name, "distribution": f"vlgym-{name}", "package": f"vlgym_{name.replace('-', '_')}",
        "promise": "", "kit": "EnvConformance", "reward_comment": "",
        "dependencies": f'"vlgym>={_version()}", "numpy>=2.0", "pillow>=10.3"',
        "cls": title, "env_id": f"{name}/{title}-v0", "year": datetime.date.today().year,
    }  # fmt: skip
    if wrap is not None:
        files, settings = WRAPPED, describe_wrapped(wrap, actions)
    else:
        files, settings = (GAME, GAME_VALUES) if multi_agent else (OWN, OWN_VALUES)
    values |= settings
    folder = parent / values["distribution"]
    if folder.exists():
        raise UserError(f"{folder} exists already; take another name, or another place with --out.")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".new-plugin-") as made:
            _fill(Path(made) / "plugin", {**COMMON, **files}, values)
            shutil.move(Path(made) / "plugin", folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); choose another place with --out.") from None
    return folder, values["env_id"]


def check_name(name: str) -> None:
    """Check that a plugin may be called so."""
    if not NAME.fullmatch(name) or len(name) > MOST_LETTERS:
        raise UserError(
            f"{name!r} is not a name for a plugin: words of small letters and digits, joined by '-', at most "
            f"{MOST_LETTERS} letters in all, the first one no digit; for example tea-room."
        )
    if keyword.iskeyword(name) or name in (FIRST_PARTY, "plugin"):
        raise UserError(f"{name!r} is taken; choose another name.")
    if name.replace("-", "_") in sys.stdlib_module_names:
        raise UserError(f"{name!r} is a module of Python's standard library; choose another name.")
    if WINDOWS.fullmatch(name):
        raise UserError(f"{name!r} is the name of a device on Windows, where no folder can have it; choose another.")
    registry = get_registry()
    taken = {normal_name(entry["distribution"]) for entry in registry.known.values()}
    taken |= {normal_name(record.distribution) for record in registry.plugins}
    if f"vlgym-{name}" in taken:
        raise UserError(f"vlgym-{name} is a distribution that exists already; choose another name.")
    if any(env_id.startswith(f"{name}/") for env_id in registry.specs):
        raise UserError(f"Ids of {name}/ are installed already, by another plugin; choose another name.")
    for distribution in (name, f"vlgym-{name}"):
        with suppress(PackageNotFoundError):
            version = metadata.version(distribution)
            raise UserError(f"{distribution} {version} is installed here; choose another name.")


def describe_wrapped(env_id: str, words: Sequence[str]) -> dict[str, Any]:
    """Make and play a Gymnasium environment and return the template values that wrap it.

    Raises:
        UserError: it cannot be made, its actions are not discrete, or it draws nothing.
    """
    if not re.fullmatch(r"([\w:.-]+/)?[\w:.-]+", env_id):
        raise UserError(f"--wrap {env_id!r} is not an environment id, for example FrozenLake-v1.")
    try:
        env = gymnasium.make(env_id, render_mode="rgb_array")
    except Exception as error:
        known = nearest(env_id, gymnasium.registry)
        raise UserError(
            f"--wrap {env_id}: Gymnasium cannot make it ({type(error).__name__}: {error}).{known}"
        ) from None
    try:
        space = env.action_space
        if not isinstance(space, gymnasium.spaces.Discrete) or space.n > MOST_ACTIONS or space.start != 0:
            raise UserError(
                f"--wrap {env_id}: its actions are {space}, and words are made for up to {MOST_ACTIONS} discrete ones. "
                "Write a subclass of vlgym.env.VLEnv instead (docs/write-a-plugin.md)."
            )
        count = int(space.n)
        names = [word.strip() for word in words] or [f"action {number}" for number in range(count)]
        if len(names) != count or len(set(names)) != count or not all(re.fullmatch(r"\w[\w -]*", n) for n in names):
            raise UserError(
                f"--actions must give {count} different words for {env_id}, of letters, digits, '-' and '_', with "
                f"commas between them; got {', '.join(names) or 'none'}."
            )
        frame, rewards = _play(env)
    finally:
        env.close()
    spec = env.spec
    limit = spec.max_episode_steps if spec is not None and spec.max_episode_steps else MOST_TURNS
    module = type(env.unwrapped).__module__
    return {
        "summary": f"{env_id} of Gymnasium, in pictures and words.", "gym_id": env_id,
        "max_turns": min(limit, MOST_TURNS), "reward_range": f"({min(rewards)!r}, {max(rewards)!r})",
        "reward_comment": f"  # seen in {SEEN_STEPS} random steps: write what the rules say",
        "success_rule": "The wrapped environment ends with a positive reward.", "skills": "",
        "image_size": f"({frame.shape[0]}, {frame.shape[1]})", "oracle": "none", "random_success_below": "1.0",
        "actions": ", ".join(f'"{name}": {number}' for number, name in enumerate(names)),
        "action_list": ", ".join(f"`{name}`" for name in names),
        "dependencies": ", ".join(f'"{each}"' for each in (f"vlgym>={_version()}", _name_source(module))),
    }  # fmt: skip


def _play(env: gymnasium.Env[Any, Any]) -> tuple[np.ndarray, list[float]]:
    """The first picture of an environment, and rewards of random steps, with 0 and 1 because most pay those."""
    env.action_space.seed(0)
    env.reset(seed=0)
    frame = env.render()
    if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3:
        raise UserError("It draws no colour picture with render_mode='rgb_array', so there is nothing to see.")
    rewards = [0.0, 1.0]
    for _ in range(SEEN_STEPS):
        _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        rewards.append(float(reward))
        if terminated or truncated:
            env.reset()
    return frame, rewards


def _name_source(module: str) -> str:
    """The requirement that brings a module's environment."""
    top, *rest = module.split(".")
    if top == "gymnasium":
        extra = next((WRAPPED_EXTRAS[part] for part in rest if part in WRAPPED_EXTRAS), "")
        return f"gymnasium[{extra}]" if extra else "gymnasium"
    return next(iter(packages_distributions().get(top, [top])))


def _version() -> str:
    return ".".join(__version__.split(".")[:2])


def _fill(folder: Path, wanted: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Write the templates, their names filled in, too."""
    source = resources.files("vlgym") / "templates" / "plugin"
    for template, name in wanted.items():
        path = folder / Template(name).substitute(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Template((source / template).read_text(encoding="utf-8")).substitute(values)
        path.write_text(text, encoding="utf-8")


def new_plugin(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the plugin, for example tea-room.")],
    wrap: Annotated[
        str | None, typer.Option(metavar="GYM_ID", help="Wrap this Gymnasium environment (discrete actions).")
    ] = None,
    actions: Annotated[
        str, typer.Option(metavar="WORD,WORD,...", help="With --wrap: words for its actions, from the first on.")
    ] = "",
    multi_agent: Annotated[
        bool, typer.Option("--multi-agent", help="Write a game of two agents (docs/write-a-plugin.md).")
    ] = False,
    out: Annotated[Path, typer.Option(help="Parent of the new folder vlgym-NAME.")] = Path("."),
) -> None:
    """Write a pip package with an environment, its card, oracle and tests that passes `vlgym check` as it is."""
    words = [word for word in actions.split(",") if actions]
    folder, env_id = write_plugin(name, out, wrap, words, multi_agent=multi_agent)
    lines = (
        f"{folder} is written. Next:", f"  pip install -e {folder}", f"  vlgym play {env_id}",
        f"  vlgym check {env_id}",
        f"  (cd {folder} && pytest)", f"  python -m baselines.vldac --env {env_id}",
        f"The rules are in {folder / 'src'}; docs/write-a-plugin.md explains them.",
    )  # fmt: skip
    open_console().print("\n".join(lines), soft_wrap=True)
