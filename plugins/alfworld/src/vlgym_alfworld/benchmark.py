"""The benchmark's own games, where `alfworld-download` has put them: found, listed in a fixed order, checked and read.

A split's games are those that ALFWorld itself plays: a folder with `traj_data.json` and `game.tw-pddl`, one of the six
task types, marked solvable, no movable receptacles, no slicing. They are sorted by their path inside the split. Full
data: train 3553, valid_seen 140, valid_unseen 134 games.

TextWorld evaluates the expressions of a text grammar as Python. In ALFWorld's grammars they are names joined by `+` or
`or` (`o.indefinite + ' ' + o.name`); a file with anything else is refused.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from vlgym.env.seeding import SPLITS as SEED_SPLITS
from vlgym.env.seeding import episode_seed, split_of
from vlgym.errors import UserError, check_choice

from .engine import fast_engine
from .game import LOOK, TASKS, Game, Goal
from .package import VARIABLE, data_folder

_ALLOWED = (ast.Expression, ast.Attribute, ast.Name, ast.Load, ast.BinOp, ast.Add, ast.Constant, ast.BoolOp, ast.Or)


def check_grammar(grammar: str, source: str) -> None:
    """Check every expression of a text grammar.

    Args:
        grammar: the grammar's text.
        source: where it comes from, for the message.

    Raises:
        UserError: the grammar cannot be read, or an expression calls, indexes, or computes.
    """
    try:
        expressions = list_expressions(grammar)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{source}: the text grammar cannot be read ({type(error).__name__}: {str(error)[:200]})."
        ) from error
    for expression in expressions:
        if not is_plain(expression):
            raise UserError(
                f"{source}: the text grammar holds the expression {expression[:80]!r}, which is not a plain name; "
                "the game is not played."
            )


@lru_cache(maxsize=64)
def list_expressions(grammar: str) -> tuple[str, ...]:
    """Return every expression of a grammar that TextWorld would evaluate; nothing is evaluated here."""
    with fast_engine():
        logic = importlib.import_module("textworld.envs.pddl.logic")
        textgen = importlib.import_module("textworld.envs.pddl.textgen")
        actions, rules = logic._parse_and_convert(grammar, rule_name="pddlStart")
        symbols = [symbol for group in rules._rules.values() for rule in group for symbol in rule.rhs]
        for action in actions.values():
            for text in (action.template, action.feedback_rule):
                symbols += textgen._parse_and_convert(text, rule_name="symbols")
        return tuple(sorted({text for symbol in symbols for text in _expressions(symbol, textgen.Symbol)}))


def is_plain(expression: str) -> bool:
    """True if an expression consists of names, attributes without underscores in front, strings, `+` and `or`."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = [node.id for node in nodes if isinstance(node, ast.Name)] + [
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    ]
    return all(isinstance(node, _ALLOWED) for node in nodes) and not any(name.startswith("_") for name in names)


def _expressions(symbol: Any, kind: type) -> Iterator[str]:
    if type(symbol).__name__ == "EvalSymbol":
        yield str(symbol.expression)
    for part in (getattr(symbol, "expression", None), getattr(symbol, "symbol", None)):
        if isinstance(part, kind):
            yield from _expressions(part, kind)


SPLITS = ("train", "valid_seen", "valid_unseen")
SPLIT_OF_SEEDS = dict(zip(SEED_SPLITS, SPLITS, strict=True))
"""The benchmark's split for each of vlgym's."""

FOLDER = "json_2.1.1"
GAME, TRAJECTORY = "game.tw-pddl", "traj_data.json"
_SENTENCE = re.compile(r"Your task is to: (.*?)\.?(?:\"|\n|$)")


def wants_benchmark(games: str, split: str | None) -> bool:
    """True if the benchmark's games are played: `benchmark` always, `auto` if a split is named and its games are
    installed.

    Raises:
        UserError: they are demanded and not there.
    """
    if games == "benchmark":
        root = data_folder() / FOLDER
        if not root.is_dir():
            raise UserError(
                f"games='benchmark': there are no ALFWorld games in {root}. Run 'alfworld-download' and set "
                f"{VARIABLE} to its folder, or use games='generated'."
            )
        return True
    return games == "auto" and split is not None and (data_folder() / FOLDER / split).is_dir()


def list_games(split: str, tasks: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the folders of a split's games of the given task types, sorted.

    Raises:
        UserError: there are none.
    """
    folders = _list_games(data_folder() / FOLDER / split, tasks)
    if not folders:
        raise UserError(
            f"No playable {', '.join(tasks)} games in {data_folder() / FOLDER / split}. Check that {VARIABLE} "
            "is the folder that 'alfworld-download' filled, or use games='generated'."
        )
    return folders


@lru_cache(maxsize=64)
def _list_games(root: Path, tasks: tuple[str, ...]) -> tuple[Path, ...]:
    folders = sorted(path.parent for path in root.glob(f"*/*/{GAME}"))
    return tuple(f for f in folders if f.parent.name.split("-", 1)[0] in tasks and _is_playable(f, root))


def game_number(seed: int, env_id: str, count: int) -> int:
    """Return the game of a seed: episode `i` of a vlgym split plays game `i` modulo their number; any other seed is its
    own `i`.
    """
    split = split_of(seed)
    known = _numbers(env_id, split, count) if split is not None else {}
    return known.get(seed, seed % count)


@lru_cache(maxsize=64)
def _numbers(env_id: str, split: str, count: int) -> dict[int, int]:
    return {episode_seed(env_id, split, index): index % count for index in range(max(count, 10_000))}


def load_game(folder: Path) -> Game:
    """Read and check a game.

    Raises:
        UserError: a file is missing, damaged, or holds what a game never needs.
    """
    data, trajectory = _read(folder / GAME), _read(folder / TRAJECTORY)
    try:
        domain, grammar, problem = (str(data[key]) for key in ("pddl_domain", "grammar", "pddl_problem"))
        wanted = trajectory["pddl_params"]
        goal = Goal(
            task=trajectory["task_type"],
            thing=wanted["object_target"],
            parent="" if trajectory["task_type"] == LOOK else wanted["parent_target"],
            toggle=wanted.get("toggle_target") or "",
        )
        scene = int(trajectory.get("scene", {}).get("scene_num") or folder.parent.name.rsplit("-", 1)[1])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UserError(
            f"{folder}: {GAME} or {TRAJECTORY} lacks {error}. Download it again: alfworld-download --force."
        ) from error
    check_choice(f"{folder / TRAJECTORY}: task_type", goal.task, TASKS)
    check_grammar(grammar, str(folder / GAME))
    match = _SENTENCE.search(grammar)
    return Game(
        name=f"{folder.parent.name}/{folder.name}",
        goal=goal,
        scene=scene,
        sentence=match.group(1).strip() if match else "",
        domain=domain,
        grammar=grammar,
        problem=problem,
        file=str(folder / GAME),
    )


def _is_playable(folder: Path, root: Path) -> bool:
    name = str(folder.relative_to(root))
    has_both = (folder / TRAJECTORY).is_file()
    return "movable" not in name and "Sliced" not in name and has_both and bool(_read(folder / GAME).get("solvable"))


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({type(error).__name__}: {error}). Download it again: alfworld-download --force."
        ) from error
    if not isinstance(data, dict):
        raise UserError(f"{path} is not a JSON object. Download it again: alfworld-download --force.")
    return data
