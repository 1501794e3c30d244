"""ALFWorld: do a household task in a room, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.errors import UserError, check_choice
from vlgym.prompts import PromptTemplate
from vlgym.seeding import split_of
from vlgym.types import Outcome

from . import rl4vlm
from .backends import Backend, DrawnBackend
from .benchmark import SPLIT_OF_SEEDS, SPLITS, game_number, list_games, load_game, wants_benchmark
from .game import Game
from .generator import draw_game
from .tasks import TASKS, check_task
from .thor import ThorBackend

BACKENDS = ("drawn", "thor")
GAMES = ("auto", "generated", "benchmark")
SUBGOAL = 1.0
"""Reward when a condition of the goal is met for the first time in an episode."""


class ALFWorld(VLEnv):
    """ALFWorld: household tasks of ALFRED in the room layouts of AI2-THOR.

    Goal: what the task says, one of six types: put an object somewhere; look at an object under a lamp; clean, heat or
        cool an object and put it somewhere; put two objects of a kind somewhere. Objects may be inside closed
        furniture.
    Observation: a plan of the room drawn from its real layout. Each piece of furniture is a labelled tile near its true
        place; a brown bar is a closed door or drawer, a green bar an open one, a red frame where the agent is, a blue
        disc the agent. The band below names what it holds and what it sees: the contents of the furniture where it
        stands, if open or without a door. The text gives the engine's last answer and all admissible commands.
    Actions: the engine's admissible commands: `go to`, `open`, `close`, `take .. from ..`, `move .. to ..`, `use`,
        `clean|heat|cool .. with ..`, `slice .. with ..`, `examine`, `inventory`, `look`, `help`. A reply must spell one
        of them wholly (`cabinet 1` is never `cabinet 10`).
    Reward: 50 on success, +1 when a condition of the goal is met for the first time, -1 for a reply without an
        admissible command (`invalid_penalty`). With `compat="rl4vlm"` the published code's: 50 on success, plus the
        fraction of conditions met at every step, -1 for an illegal reply.
    Endings: terminated on success; truncated after 50 turns.
    Success: the engine's own goal test.
    Info: `goal_condition_success_rate` (fraction of ALFRED's goal conditions that the state meets; also `score`),
        `task_type`, `game`, `scene`, `games` (`generated` or `benchmark`).
    Splits: generated games use the official scenes: train and val the 96 seen rooms (other games), test the 24 unseen
        ones. The benchmark's games map train, val, test to its train, valid_seen, valid_unseen.
    Oracle: reads the state; wins every generated game.

    Generated games are not the benchmark's games, and scores on them do not compare with published ones. The
    benchmark's are played when `ALFWORLD_DATA` holds them and `split` is given, or with `games="benchmark"`: sorted by
    folder, episode `i` of a vlgym split plays game `i` modulo their number.

    References:
        Shridhar et al., ALFWorld: Aligning Text and Embodied Environments for Interactive Learning, ICLR 2021, arXiv
        2010.03768. Shridhar et al., ALFRED, CVPR 2020. Zhai et al., RL4VLM, NeurIPS 2024. VL-DAC, arXiv 2508.04280.

    Args:
        tasks: ALFRED task types that are drawn, uniformly; default all six.
        games: `generated`, `benchmark`, or `auto` (the benchmark's where `split` is given and they are installed, else
            generated).
        split: `train`, `valid_seen` or `valid_unseen`; default from the seed.
        compat: `None` or `"rl4vlm"`.
        backend: `drawn`, or `thor` for AI2-THOR's own frames (needs much that this package does not bring; it says what
            is missing).
        text_observation: whether the text repeats the engine's last answer; without it, what is held, open and seen
            must be read from the picture.
        **kwargs: of `VLEnv`; `invalid_penalty` is 1 here by default.

    Options of `reset`: `task` (a task type), `scene` (a floor plan number, generated games), `game` (the number of a
    benchmark game).

    Raises:
        UserError: an argument or option is out of its range, or benchmark games are asked for and not there.
    """

    prompt = PromptTemplate(
        version=1,
        instructions=(
            "You are an expert in a household. The picture shows the room from above: labelled furniture (brown bar: "
            "closed, green bar: open), you as a blue disc, and a red frame around the furniture where you are. Below "
            "the plan stands what you hold and see.\n"
            "Your task is to: {task}.\nYou have {max_turns} turns.\n{format}"
        ),
        turn="Turn {turn} of {max_turns}.\n{state}\nLegal actions: {actions}.",
    )

    def __init__(
        self,
        *,
        tasks: Sequence[str] | None = None,
        games: str = "auto",
        split: str | None = None,
        compat: str | None = None,
        backend: str = "drawn",
        text_observation: bool = True,
        invalid_penalty: float = rl4vlm.ILLEGAL,
        **kwargs: Any,
    ) -> None:
        self.tasks = tuple(check_task(task) for task in ((tasks,) if isinstance(tasks, str) else tasks or TASKS))
        self.games = check_choice("games", games, GAMES)
        self.split = check_choice("split", split, (None, *SPLITS))
        self.backend = check_choice("backend", backend, BACKENDS)
        self.compat = check_choice("compat", compat, rl4vlm.COMPAT)
        self.text_observation = bool(text_observation)
        if self.compat is not None:
            kwargs["parser"] = kwargs.get("parser") or rl4vlm.PARSER
        super().__init__(invalid_penalty=invalid_penalty, **kwargs)
        self.uses_benchmark = self.backend == "thor" or wants_benchmark(self.games, self.split)
        self._backend: Backend | None = self._make_backend() if self.backend == "thor" else None
        self._game: Game | None = None
        self._met: tuple[bool, ...] = ()
        self._ever_met: tuple[bool, ...] = ()
        self._part = "train"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin an episode; the seed also says which split's rooms or games are used."""
        if seed is not None:
            self._part = SPLIT_OF_SEEDS[split_of(seed) or "train"]
        # Split and seed go into the options, so that `set_state` restores them whatever this one was seeded with.
        return super().reset(seed=seed, options={"split": self.split or self._part, "seed": seed, **(options or {})})

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        """Draw or choose a game and open it."""
        tasks = (check_task(options["task"]),) if options.get("task") is not None else self.tasks
        self._game = self._choose_game(rng, tasks, options)
        if self._backend is None:
            self._backend = self._make_backend()
        self._backend.open(self._game)
        self._met = self._ever_met = self._backend.conditions()

    def act(self, action: str) -> Outcome:
        """Execute a command."""
        backend = self._running()
        backend.command(action)
        self._met = backend.conditions()
        first = sum(now and not before for now, before in zip(self._met, self._ever_met, strict=True))
        self._ever_met = tuple(now or before for now, before in zip(self._met, self._ever_met, strict=True))
        progress = self._rate() if self.compat else SUBGOAL * first
        return Outcome(rl4vlm.WIN * backend.won + progress, terminated=backend.won, feedback=backend.feedback)

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Read the reply, act, observe. With `compat="rl4vlm"` an illegal reply is paid its fraction of conditions too,
        as published.
        """
        observation, reward, terminated, truncated, info = super().step(action)
        if self.compat and info["invalid_action"] and not info["vlgym"]["actions"]:
            reward += self._rate()
            self.episode_return += self._rate()
        return observation, reward, terminated, truncated, info

    def natural_size(self) -> tuple[int, int] | None:
        """The published pictures' size with `compat="rl4vlm"`."""
        return rl4vlm.IMAGE_SIZE if self.compat else None

    def image(self) -> NDArray[np.uint8]:
        """The picture of the room."""
        return self._running().frame()

    def task(self) -> str:
        """The task's sentence."""
        return self._game.sentence if self._game is not None else ""

    def state_text(self) -> str:
        """The engine's last answer, or nothing with `text_observation=False`."""
        return self._running().feedback if self.text_observation else ""

    def legal_actions(self) -> list[str]:
        """The admissible commands, in the engine's order."""
        return list(self._running().commands)

    def oracle(self) -> str | None:
        """The oracle's next command."""
        advice = self._running().advise()
        return advice.command if advice is not None else None

    def think(self, action: str) -> str:
        """Why the oracle gives that command."""
        advice = self._running().advise()
        return f"{advice.reason}." if advice is not None and advice.command == action else ""

    def success(self) -> bool:
        """Whether the engine's goal test holds."""
        return self._running().won

    def score(self) -> float:
        """The fraction of ALFRED's goal conditions that the state meets."""
        return self._rate()

    def extra_info(self) -> dict[str, Any]:
        """Task, game and progress."""
        game = self._game
        return {
            "goal_condition_success_rate": self._rate(),
            "task_type": game.goal.task if game is not None else "",
            "game": game.name if game is not None else "",
            "scene": game.scene if game is not None else 0,
            "games": "benchmark" if self.uses_benchmark else "generated",
        }

    def close(self) -> None:
        """Free the engine."""
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    def _make_backend(self) -> Backend:
        return ThorBackend(self.image_size) if self.backend == "thor" else DrawnBackend(self.image_size)

    def _choose_game(self, rng: np.random.Generator, tasks: tuple[str, ...], options: dict[str, Any]) -> Game:
        if self.uses_benchmark:
            paths = list_games(options["split"], tasks)
            number = options.get("game")
            if number is None:
                env_id = self.vlgym_spec.id if self.vlgym_spec is not None else "vlgym/ALFWorld-v0"
                number = (
                    game_number(options["seed"], env_id, len(paths))
                    if options["seed"] is not None
                    else int(rng.integers(len(paths)))
                )
            if not (isinstance(number, int) and 0 <= number < len(paths)):
                raise UserError(
                    f"reset option game={number!r} must be from 0 to {len(paths) - 1} for split {options['split']}."
                )
            return load_game(paths[number])
        scene = options.get("scene")
        if scene is not None and not isinstance(scene, int):
            raise UserError(f"reset option scene={scene!r} must be a floor plan number, for example 9.")
        task = tasks[int(rng.integers(len(tasks)))]
        return draw_game(rng, task, seen=options["split"] != "valid_unseen", scene=scene)

    def _rate(self) -> float:
        return sum(self._met) / len(self._met) if self._met else 0.0

    def _running(self) -> Backend:
        if self._backend is None:
            raise UserError("No game is running: call env.reset() first.")
        return self._backend
