"""ALFWorld: do a household task in a room, in words.

With action templates the list of legal actions names furniture only. A player spells what it holds
or sees from the picture; every command that the engine does not admit is refused in the same words.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import ResetOption
from vlgym.errors import UserError, check_choice
from vlgym.types import Outcome

from . import rl4vlm
from .benchmark import SPLIT_OF_SEEDS, SPLITS, game_number, list_games, load_game, wants_benchmark
from .drawn import TextGame
from .game import CLEAN, COOL, HEAT, LOOK, PICK, PICK_TWO, TASKS, Game
from .generator import FEWEST_THINGS, MOST_THINGS, draw_game
from .oracle import Advice
from .rooms import load_room
from .thor import ThorBackend

TEMPLATES = (
    "take OBJECT from RECEPTACLE", "move OBJECT to RECEPTACLE", "use OBJECT",
    "clean OBJECT with RECEPTACLE", "heat OBJECT with RECEPTACLE", "cool OBJECT with RECEPTACLE",
    "slice OBJECT with OBJECT",
)  # fmt: skip
"""Commands in addition to the listed ones; the player fills in the capitals."""

_OLDER = "put OBJECT in/on RECEPTACLE"  # `move .. to ..` of engines before alfworld 0.4
_FORMS = tuple(re.compile(re.sub(r"[A-Z]+", ".+", form)) for form in (*TEMPLATES, _OLDER))
_DOOR = re.compile(r"(?:open|close) (.+)")
SUBGOAL = 1.0  # reward when a condition of the goal is met for the first time in an episode


def list_furniture_actions(commands: Sequence[str]) -> list[str]:
    """Return the legal actions that need no sight: each `go to`, and `open` and `close` of doors here."""
    going = [command for command in commands if command.startswith("go to ")]
    doors = dict.fromkeys(match[1] for match in map(_DOOR.fullmatch, commands) if match)
    return going + [f"{verb} {place}" for place in doors for verb in ("open", "close")]


def match_template(wanted: str, commands: Sequence[str]) -> str | None:
    """Return the command that fits a template and is spelled so, case, blanks and `#` aside."""
    for command in commands:
        if _plain(command) == _plain(wanted) and any(form.fullmatch(command) for form in _FORMS):
            return command
    return None


def _plain(text: str) -> str:
    return " ".join(text.replace("#", " ").split()).casefold()


_PICTURE = (
    "You are an expert in a household. The picture shows the room from above: labelled furniture "
    "(brown bar: closed, green bar: open), you as a blue disc, and a red frame around the furniture "
    "where you are. Below the plan stands what you hold and see.\n"
)
_LOOK_AND_SPELL = PromptTemplate(
    version=2,
    instructions=(
        f"{_PICTURE}Your task is to: {{task}}.\nYou have {{max_turns}} turns.\n"
        "The legal actions of a turn list where you can go, and the doors where you are. With things "
        f"that you see or hold you also have: {', '.join(TEMPLATES)}. Spell an OBJECT with its "
        "number, both as below the plan; what is not there, not seen or not possible is refused, and "
        "changes nothing.\n{format}"
    ),
    turn="Turn {turn} of {max_turns}.\n{state}\nLegal actions: {actions}.",
)


class ALFWorld(VLEnv):
    """ALFWorld: household tasks of ALFRED in the room layouts of AI2-THOR.

    Goal: the task's sentence, of one of six types: put an object somewhere; look at an object under
        a lamp; clean, heat or cool an object and put it somewhere; put two objects of a kind
        somewhere. Objects may be inside closed furniture.
    Observation: a plan of the room, 448 x 448 pixels by default. Each piece of furniture is a
        labelled tile as near to its true place as fits; no two overlap. A brown bar is a closed
        door or drawer, a green bar an open one, a red frame where the agent is, a blue disc the
        agent with its heading. The band below names what it holds and sees: the contents of the
        furniture where it stands, if open or without a door, with their state (`cup 1 (hot)`).
        Labels are at least 11 pixels high; other sizes are scaled from 448, and below about 300
        labels suffer. With action templates (`-v1`) things have drawn numbers (`cup #37`), and the
        picture alone shows what is held, open and seen: the text tells the task, where one can go,
        and the doors where the agent is. With listed actions (`-v0`) the text gives the engine's
        last answer and all admissible commands, which name what is there.
    Actions: with action templates `go to RECEPTACLE`, `open RECEPTACLE`, `close RECEPTACLE`, which
        are listed, and `take OBJECT from RECEPTACLE`, `move OBJECT to RECEPTACLE`, `use OBJECT`,
        `clean|heat|cool OBJECT with RECEPTACLE`, `slice OBJECT with OBJECT`, which are matched
        against what is there. With listed actions the engine's admissible commands, `examine`,
        `inventory`, `look` and `help` included. A reply must spell one of them wholly (`cabinet 1`
        is never `cabinet 10`); any other changes nothing, and every refusal is the same.
    Reward: +50 on success, +1 when a condition of the goal is met for the first time, -1 for a
        reply without an admissible command (`invalid_penalty`). `compat="rl4vlm"` is the published
        code (`alf_utils.py`): +50 on success, the fraction of conditions met at every step (so
        loitering pays), -1 for an illegal reply. The paper's text says +1 at a sub-goal, as the
        default here. `compat="vldac"`: the same with +1 on success.
    Conditions: ALFRED's (`alfworld/env/tasks.py`), counted on the engine's facts. Pick: in place.
        Pick two: one in place, two in the same receptacle. Look: the object held, a lit lamp where
        the agent is. Clean, heat, cool: one in place, one treated, a treated one in place.
    Endings: terminated on success; truncated after 50 turns.
    Success: the engine's goal test.
    Info: `goal_condition_success_rate` (fraction of ALFRED's goal conditions that the state meets;
        also `score`), `task_type`, `game`, `scene`, `games` (`generated` or `benchmark`).
    Splits: generated games use the official scenes: train and val the 96 seen rooms (other games),
        test the 24 unseen ones. The benchmark's games map train, val, test to its train,
        valid_seen, valid_unseen.
    Oracle: `seeking` (`-v1`) knows only what was seen in the episode: it looks first where the
        object is likeliest for the fewest commands, so a model can learn from it. `knowing` (`-v0`)
        knows where everything is. Both won all test episodes of registry.yaml's ceilings; `knowing`
        took 6 commands on average and 11 at most in 100 games of all types, also after 15 random
        commands. Neither runs a planner; both are good, not proved shortest.

    Scores on generated games do not compare with published ones. The benchmark's games are played
    when `ALFWORLD_DATA` holds them and `split` is given, or with `games="benchmark"`: sorted by
    folder; episode `i` of a vlgym split plays game `i` modulo their number.

    References:
        Shridhar et al., ALFWorld: Aligning Text and Embodied Environments for Interactive Learning,
        ICLR 2021, arXiv 2010.03768. Shridhar et al., ALFRED, CVPR 2020. Zhai et al., RL4VLM,
        NeurIPS 2024. VL-DAC, arXiv 2508.04280.

    Args:
        tasks: ALFRED task types that are drawn, uniformly; default all six.
        games: `generated`, `benchmark`, or `auto` (the benchmark's where `split` is given and they
            are installed, else generated).
        split: `train`, `valid_seen` or `valid_unseen`; default from the seed.
        compat: `None`, `"rl4vlm"` or `"vldac"`: reward as above, 300 x 300 pixels, and the
            published reader, which takes the first admissible command after `"action":` (so "go to
            cabinet 10" becomes "go to cabinet 1" where both are admissible); the actions are
            listed, and an empty reply executes a random one of them, drawn from the episode's
            generator, and costs 1. Not reproduced: there every reset has one seed.
        backend: `drawn`, or `thor` for AI2-THOR's frames (this package does not bring all that it
            needs; the error names what is missing).
        actions: `listed`, all admissible commands; or `templates`, commands that the player fills
            in from the picture (with `backend="thor"` under the simulator's names).
        teacher: `knowing` or `seeking`: what the oracle knows.
        text_observation: whether the text repeats the engine's last answer; by default with listed
            actions only. Without it listed commands still name what is there; templates do not.
        **kwargs: of `VLEnv`.

    Options of `reset`: `task` (a task type), `scene` (a floor plan number, generated games), `game`
        (the number of a benchmark game); in generated games `level`, 0 to 4: task types,
        receptacles in the room, objects.

    Raises:
        UserError: a value is out of its range, or benchmark games are demanded and not there.
    """

    prompt = PromptTemplate(
        version=1,
        instructions=_PICTURE + "Your task is to: {task}.\nYou have {max_turns} turns.\n{format}",
        turn="Turn {turn} of {max_turns}.\n{state}\nLegal actions: {actions}.",
    )
    reset_options: ClassVar = {
        "task": ResetOption(
            "the task", f"one of {', '.join(TASKS)}",
            lambda env, value: check_choice("task type", value, TASKS), ("no such task", 1),
        ),
        "scene": ResetOption(
            "the room, in generated games", "a floor plan number, for example 9",
            lambda env, value: env._read_scene(value), (0.5, True, "kitchen", -1),
        ),
        "game": ResetOption(
            "the game, where the benchmark's are played",
            "a number from 0, below the split's number of games",
            lambda env, value: env._read_game(value), (0.5, True, "x", -1),
        ),
    }  # fmt: skip

    types: Sequence[str] = TASKS
    things: tuple[int, int] = (FEWEST_THINGS, MOST_THINGS)
    places: tuple[int, int] = (0, 999)
    level_arguments: ClassVar = (
        {"types": (PICK,), "places": (0, 9), "things": (3, 6)},
        {"types": (PICK, LOOK, CLEAN), "places": (0, 16), "things": (8, 14)},
        {"types": (CLEAN, HEAT, COOL), "places": (7, 24)},
        {"types": (HEAT, COOL, PICK_TWO), "places": (12, 999), "things": (16, 26), "max_turns": 80},
        {"types": (PICK_TWO,), "places": (16, 999), "things": (22, 34), "max_turns": 100},
    )

    def __init__(
        self,
        *,
        tasks: Sequence[str] | None = None,
        games: str = "auto",
        split: str | None = None,
        compat: str | None = None,
        backend: str = "drawn",
        actions: str = "listed",
        teacher: str = "knowing",
        text_observation: bool | None = None,
        invalid_penalty: float = rl4vlm.ILLEGAL,
        **kwargs: Any,
    ) -> None:
        chosen = (tasks,) if isinstance(tasks, str) else tasks or TASKS
        self.tasks = tuple(check_choice("task type", task, TASKS) for task in chosen)
        self.games = check_choice("games", games, ("auto", "generated", "benchmark"))
        self.split = check_choice("split", split, (None, *SPLITS))
        self.backend = check_choice("backend", backend, ("drawn", "thor"))
        self.compat = check_choice("compat", compat, rl4vlm.COMPAT)
        check_choice("actions", actions, ("listed", "templates"))
        self.teacher = check_choice("teacher", teacher, ("knowing", "seeking"))

        # The published reader knows listed actions only.
        self.actions = actions if compat is None else "listed"
        listed = self.actions == "listed"
        self.text_observation = listed if text_observation is None else bool(text_observation)
        if not listed:
            self.prompt = _LOOK_AND_SPELL  # type: ignore[misc]  # elsewhere of the class
        if compat is not None:
            kwargs["parser"] = kwargs.get("parser") or rl4vlm.PARSER
        super().__init__(invalid_penalty=invalid_penalty, **kwargs)

        self.uses_benchmark = backend == "thor" or wants_benchmark(games, split)
        make = ThorBackend if backend == "thor" else TextGame
        self._backend: TextGame | ThorBackend = make(self.image_size)
        self._met: tuple[bool, ...] = ()
        self._ever_met: tuple[bool, ...] = ()

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        tasks = (options["task"],) if "task" in options else self.tasks
        tasks = tuple(task for task in tasks if task in self.types) or tasks
        self._game = self._choose_game(rng, tasks, options)
        tag_seed = None if self.actions == "listed" else int(rng.integers(2**32))
        self._backend.open(self._game, tag_seed)
        self._met = self._ever_met = self._backend.conditions()

    def act(self, action: str) -> Outcome:
        """Execute a command; a door that is as it should be already is refused."""
        backend = self._backend
        if action not in backend.commands:
            return Outcome(illegal=True, feedback="refused")
        backend.command(action)

        # A condition pays once; with `compat` the share of the met ones pays at every step.
        self._met = backend.conditions()
        before = self._ever_met
        self._ever_met = tuple(now or old for now, old in zip(self._met, before, strict=True))
        progress = self.score() if self.compat else SUBGOAL * (sum(self._ever_met) - sum(before))
        reward = rl4vlm.COMPAT[self.compat] * backend.won + progress
        return Outcome(reward, terminated=backend.won, feedback=backend.feedback)

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take a step; with `compat` an illegal reply is paid its fraction of conditions, as published."""
        observation, reward, terminated, truncated, info = super().step(action)
        if self.compat and info["invalid_action"] and not info["vlgym"]["actions"]:
            reward += self.score()
            self.episode_return += self.score()
        return observation, reward, terminated, truncated, info

    def resolve_arguments(self) -> dict[str, Any]:
        form = {"actions": self.actions, "text_observation": self.text_observation}
        return {"games": self._source(), **form}

    def natural_size(self) -> tuple[int, int] | None:
        return rl4vlm.IMAGE_SIZE if self.compat else None

    def image(self) -> NDArray[np.uint8]:
        return self._backend.frame()

    def task(self) -> str:
        return self._game.sentence

    def state_text(self) -> str:
        return self._backend.feedback if self.text_observation else ""

    def legal_actions(self) -> list[str]:
        """The admissible commands in the engine's order; with templates those on furniture alone."""
        commands = self._backend.commands
        return list(commands) if self.actions == "listed" else list_furniture_actions(commands)

    def match_action(self, wanted: str) -> str | None:
        command = super().match_action(wanted)
        if command is None and self.actions == "templates":
            return match_template(wanted, self._backend.commands)
        return command

    def oracle(self) -> str | None:
        advice = self._advise()
        return advice.command if advice else None

    def think(self, action: str) -> str:
        advice = self._advise()
        return f"{advice.reason}." if advice and advice.command == action else ""

    def success(self) -> bool:
        return self._backend.won

    def score(self) -> float:
        return sum(self._met) / len(self._met) if self._met else 0.0

    def extra_info(self) -> dict[str, Any]:
        game = self._game
        return {
            "goal_condition_success_rate": self.score(), "task_type": game.goal.task,
            "game": game.name, "scene": game.scene, "games": self._source(),
        }  # fmt: skip

    def close(self) -> None:
        self._backend.close()
        super().close()

    def _source(self) -> str:
        return "benchmark" if self.uses_benchmark else "generated"

    def _fail(self, failure: str, executed: list[str], reward: float) -> tuple[list[str], Outcome, str]:
        """With `compat` an empty reply plays a random admissible command, as published."""
        before = self.invalid_action
        if self.compat is not None and failure == rl4vlm.EMPTY and before == "noop":
            self.invalid_action = "published"
        try:
            return super()._fail(failure, executed, reward)
        finally:
            self.invalid_action = before

    def _advise(self) -> Advice | None:
        return self._backend.advise(seeking=self.teacher == "seeking")

    def _choose_game(self, rng: np.random.Generator, tasks: tuple[str, ...], options: dict[str, Any]) -> Game:
        split = self.split or SPLIT_OF_SEEDS[self.seed_split or "train"]
        if not self.uses_benchmark:
            task = tasks[int(rng.integers(len(tasks)))]
            scene = options.get("scene")
            bounds = {"things": self.things, "places": self.places}
            return draw_game(rng, task, seen=split != "valid_unseen", scene=scene, **bounds)

        # Seeds of a split play the benchmark's games in turn, so that each counts once.
        paths = list_games(split, tasks)
        if "game" in options:
            number = options["game"]
        elif self.reset_seed is not None:
            env_id = self.vlgym_spec.id if self.vlgym_spec is not None else "vlgym/ALFWorld-v0"
            number = game_number(self.reset_seed, env_id, len(paths))
        else:
            number = int(rng.integers(len(paths)))
        if number >= len(paths):
            raise UserError(f"reset option game={number} must be from 0 to {len(paths) - 1} for split {split}.")
        return load_game(paths[number])

    def _read_scene(self, value: Any) -> int:
        if self.uses_benchmark:
            reason = "the benchmark's games are played, which bring their rooms"
            raise UserError(f"{reason}; game=NUMBER chooses one.")
        if type(value) is not int:
            raise ValueError
        return load_room(value).scene

    def _read_game(self, value: Any) -> int:
        if not self.uses_benchmark:
            reason = "generated games are played, which have no numbers"
            raise UserError(f"{reason}; the benchmark's have: split or games.")
        if type(value) is not int or value < 0:
            raise ValueError
        return value
