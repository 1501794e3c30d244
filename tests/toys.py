"""Small environments for the core's tests, and ways to install specs and plugins without pip."""

import contextlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import gymnasium
import numpy as np

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import whole_number
from vlgym.env.spec import EnvSpec
from vlgym.registry import get_registry
from vlgym.types import Outcome


class Walk(VLEnv):
    """Walk along a line to a target.

    Goal: stand on the target, 3 to 5 cells to the left or right of the start.
    Observation: a line of 11 cells; your cell is white, the target red; the text has your place.
    Actions: `left`, `right`.
    Reward: 1 for the step that reaches the target, else 0.
    Endings: terminated on the target; truncated after 8 turns.
    References: none.

    Options of `reset`: `target`, a cell.
    """

    prompt = PromptTemplate(1, "Walk. {task} {format}", "{state} Legal actions: {actions}.")

    reset_options: ClassVar = {"target": whole_number("where to go", -5, 5)}

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.target = int(rng.integers(3, 6)) * (1 if rng.integers(2) else -1)
        self.target = int(options.get("target", self.target))
        self.position = 0

    def act(self, action: str) -> Outcome:
        self.position = max(-5, min(5, self.position + (1 if action == "right" else -1)))
        won = self.position == self.target
        return Outcome(reward=float(won), terminated=won, feedback=f"went {action}")

    def image(self) -> np.ndarray:
        height, width = self.image_size
        canvas = np.full((height, width, 3), 30, np.uint8)
        cell = width // 11
        for place, color in ((self.target, (255, 0, 0)), (self.position, (255, 255, 255))):
            canvas[:, (place + 5) * cell : (place + 6) * cell] = color
        return canvas

    def describe(self) -> str:
        return f"cell {self.position} white, cell {self.target} red"

    def task(self) -> str:
        return f"Go to cell {self.target}."

    def state_text(self) -> str:
        return f"You are in cell {self.position}."

    def legal_actions(self) -> list[str]:
        return ["left", "right"]

    def success(self) -> bool:
        return self.position == self.target

    def oracle(self) -> str | None:
        return "right" if self.target > self.position else "left"

    def think(self, action: str) -> str:
        return f"the target lies {action}"


class Coin(VLEnv):
    """Say heads or tails, with a reward for each action, a rule against `dig`, and a score.

    Goal: say `heads` three times.
    Observation: a grey picture.
    Actions: `heads`, `tails`, `dig` (listed, but against the rules).
    Reward: 2 for heads, -1 for tails, 0 for dig.
    Endings: terminated after the third heads.
    References: none.
    """

    prompt = PromptTemplate(1, "{task} {format}", "{state} {actions} turn {turn} of {max_turns}")

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.heads = 0
        self.luck = float(rng.random())

    def act(self, action: str) -> Outcome:
        if action == "dig":
            return Outcome(0.0, feedback="no digging", illegal=True)
        self.heads += action == "heads"
        return Outcome(2.0 if action == "heads" else -1.0, terminated=self.heads == 3)

    def image(self) -> np.ndarray:
        return np.full((*self.image_size, 3), 99, np.uint8)

    def task(self) -> str:
        return "Say heads."

    def state_text(self) -> str:
        return f"luck {self.luck:.6f}"

    def legal_actions(self) -> list[str]:
        return ["heads", "tails", "dig"]

    def success(self) -> bool:
        return self.heads == 3

    def score(self) -> float:
        return self.heads / 3

    def extra_info(self) -> dict[str, Any]:
        return {"heads": self.heads}


def make_spec(env_id: str = "vlgym/Walk-v0", entry_point: str = "toys:Walk", **changes: Any) -> EnvSpec:
    """Return a valid spec of `Walk`, with changes."""
    fields: dict[str, Any] = {
        "id": env_id, "entry_point": entry_point, "summary": "Walk to the target.",
        "family": "toys", "max_turns": 8,
        "reward_range": (-1.0, 2.0) if entry_point == "toys:Coin" else (0.0, 1.0),
        "image_size": (22, 22), "success_rule": "You stand on the target.",
        "random_success_below": 0.9,
    }  # fmt: skip
    return EnvSpec(**{**fields, **changes})


def make_walk(**kwargs: Any) -> Walk:
    """Return a `Walk` with its spec, not registered anywhere."""
    return Walk(vlgym_spec=make_spec(), **kwargs)


def make_entry(spec: EnvSpec, distribution: str = "vlgym-toys", **changes: Any) -> dict[str, Any]:
    """Return a registry.yaml entry with made-up hashes and figures."""
    figures = {"se": 0.01, "episodes": 100}
    return {
        "distribution": distribution, "spec": spec, "prompt_hash": "aaaa",
        "parser_hash": "auto-v1", "fingerprint": "1111", "pictures": "",
        "floor": {"return": 0.25, "success": 0.25, **figures},
        "ceiling": {"return": 1.0, "success": 1.0, **figures, "se": 0.0}, **changes,
    }  # fmt: skip


@contextlib.contextmanager
def installed(
    *specs: EnvSpec, distribution: str = "vlgym-toys", known: dict[str, dict[str, Any]] | None = None
) -> Iterator[None]:
    """Act as if a plugin with these specs were installed, and as if registry.yaml held `known`."""
    registry, known = get_registry(), known or {}
    with contextlib.ExitStack() as undo:
        for part in (registry.specs, registry.owner, registry.known, gymnasium.registry):
            undo.enter_context(patch.dict(part))
        registry.specs.update({spec.id: spec for spec in specs})
        registry.owner.update(dict.fromkeys((spec.id for spec in specs), distribution))
        registry.known.update(known)
        for env_id in {*(spec.id for spec in specs), *known} - gymnasium.registry.keys():
            gymnasium.register(env_id, "vlgym.registry.making:construct", kwargs={"vlgym_id": env_id})
        yield


JUNK = (".DS_Store", "._run.json", ".nfs00000000015d7e", ".fuse_hidden01", ".localized", ".directory", "Thumbs.db",
        "desktop.ini", ".run.json.0123abcd.part")  # fmt: skip
"""Files that programs leave in folders which are not theirs."""


def litter(folder: Path) -> Path:
    """Put junk into a folder and those below it; make it if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        for name in JUNK:
            (place / name).write_bytes(b"\0junk")
    return folder


def read_files(place: Path) -> dict[Path, bytes]:
    """Return the content of a file, or of every file of a folder."""
    return {path: path.read_bytes() for path in (place, *place.rglob("*")) if path.is_file()}


def install_plugin(folder: Path, name: str, source: str, distribution: str = "", version: str = "1.0") -> None:
    """Write a plugin module and its distribution's metadata into a folder for PYTHONPATH."""
    distribution = distribution or f"vlgym-{name}"
    module = f"{name}_plugin"
    (folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[vlgym]\n{name} = {module}\n", encoding="utf-8")


PLUGIN = """
from vlgym import hookimpl
from vlgym.env.spec import EnvSpec

@hookimpl
def vlgym_envs():
    {first}
    card = dict(entry_point="toys:Walk", summary="s", family="fake", max_turns=8, reward_range=(0, 1))
    return [EnvSpec(id=env_id, success_rule="r", image_size=(22, 22), **card) for env_id in {ids}]
"""
"""Source of a plugin that provides `Walk` by these ids, after a first line."""
