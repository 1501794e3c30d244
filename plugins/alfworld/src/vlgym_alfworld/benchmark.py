"""The benchmark's games, where `alfworld-download` has put them: listed, checked and read.

A split's games are those that ALFWorld plays: a folder with `traj_data.json` and `game.tw-pddl`,
one of the six task types, marked solvable, no movable receptacles, no slicing. They are sorted by
their path. Full data: train 3553, valid_seen 140, valid_unseen 134 games.

TextWorld evaluates the expressions of a text grammar as Python. In ALFWorld's grammars they are
names joined by `+` or `or` (`o.indefinite + ' ' + o.name`); a file with anything else is refused.
"""

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

from .game import LOOK, TASKS, Game, Goal
from .package import DOWNLOAD_AGAIN, VARIABLE, data_folder, fast_engine

SPLITS = ("train", "valid_seen", "valid_unseen")
SPLIT_OF_SEEDS = dict(zip(SEED_SPLITS, SPLITS, strict=True))
FOLDER = "json_2.1.1"
GAME, TRAJECTORY = "game.tw-pddl", "traj_data.json"
_SENTENCE = re.compile(r"Your task is to: (.*?)\.?(?:\"|\n|$)")
_ALLOWED = (
    ast.Expression, ast.Attribute, ast.Name, ast.Load, ast.BinOp, ast.Add, ast.Constant, ast.BoolOp,
    ast.Or,
)  # fmt: skip


def check_grammar(grammar: str, source: str) -> None:
    """Raise a `UserError` if a grammar cannot be read, or has more than plain names in expressions."""
    try:
        expressions = _list_expressions(grammar)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise UserError(f"{source}: the text grammar cannot be read ({reason}).") from error
    for expression in expressions:
        if not _is_plain(expression):
            raise UserError(
                f"{source}: the text grammar holds the expression {expression[:80]!r}, "
                "which is not a plain name; the game is not played."
            )


@lru_cache(maxsize=64)
def _list_expressions(grammar: str) -> tuple[str, ...]:
    """Return every expression that TextWorld would evaluate; nothing is evaluated here."""
    with fast_engine():
        logic = importlib.import_module("textworld.envs.pddl.logic")
        textgen = importlib.import_module("textworld.envs.pddl.textgen")
        actions, rules = logic._parse_and_convert(grammar, rule_name="pddlStart")
        symbols = [symbol for group in rules._rules.values() for rule in group for symbol in rule.rhs]
        for action in actions.values():
            for text in (action.template, action.feedback_rule):
                symbols += textgen._parse_and_convert(text, rule_name="symbols")
        return tuple({text for symbol in symbols for text in _expressions(symbol, textgen.Symbol)})


def _is_plain(expression: str) -> bool:
    """True for names, attributes without underscores in front, strings, `+` and `or`."""
    try:
        nodes = list(ast.walk(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = [getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes]
    return all(isinstance(node, _ALLOWED) for node in nodes) and not any(name.startswith("_") for name in names)


def _expressions(symbol: Any, kind: type) -> Iterator[str]:
    if type(symbol).__name__ == "EvalSymbol":
        yield str(symbol.expression)
    for part in (getattr(symbol, "expression", None), getattr(symbol, "symbol", None)):
        if isinstance(part, kind):
            yield from _expressions(part, kind)


def wants_benchmark(games: str, split: str | None) -> bool:
    """True for `benchmark`, whose games must be there, and for `auto` if the named split is installed."""
    root = data_folder() / FOLDER
    if games == "benchmark" and not root.is_dir():
        raise UserError(
            f"games='benchmark': there are no ALFWorld games in {root}. Run 'alfworld-download' and "
            f"set {VARIABLE} to its folder, or use games='generated'."
        )
    installed = split is not None and (root / split).is_dir()
    return games == "benchmark" or (games == "auto" and installed)


@lru_cache(maxsize=64)
def list_games(split: str, tasks: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the folders of a split's games of these task types, sorted; a `UserError` for none."""
    root = data_folder() / FOLDER / split
    folders = sorted(path.parent for path in root.glob(f"*/*/{GAME}"))
    own = [folder for folder in folders if folder.parent.name.split("-", 1)[0] in tasks]
    playable = tuple(folder for folder in own if _is_playable(folder, root))
    if not playable:
        raise UserError(
            f"No playable {', '.join(tasks)} games in {root}. Check that {VARIABLE} is the folder "
            "that 'alfworld-download' filled, or use games='generated'."
        )
    return playable


def game_number(seed: int, env_id: str, count: int) -> int:
    """Return `i` modulo `count` for episode `i` of a vlgym split, `seed` modulo `count` for others."""
    split = split_of(seed)
    numbers = _numbers(env_id, split, count) if split is not None else {}
    return numbers.get(seed, seed % count)


@lru_cache(maxsize=64)
def _numbers(env_id: str, split: str, count: int) -> dict[int, int]:
    return {episode_seed(env_id, split, index): index % count for index in range(max(count, 10_000))}


def load_game(folder: Path) -> Game:
    """Read and check a game; a `UserError` for files that are missing, damaged, or hold code."""
    data, trajectory = _read(folder / GAME), _read(folder / TRAJECTORY)
    name = f"{folder.parent.name}/{folder.name}"
    try:
        domain, grammar, problem = (str(data[key]) for key in ("pddl_domain", "grammar", "pddl_problem"))
        task, wanted = trajectory["task_type"], trajectory["pddl_params"]
        parent = "" if task == LOOK else wanted["parent_target"]
        goal = Goal(task, wanted["object_target"], parent, wanted.get("toggle_target") or "")
        scene = trajectory.get("scene", {}).get("scene_num") or folder.parent.name.rsplit("-", 1)[1]
        scene = int(scene)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UserError(f"{folder}: {GAME} or {TRAJECTORY} lacks {error}. {DOWNLOAD_AGAIN}") from error
    check_choice(f"{folder / TRAJECTORY}: task_type", task, TASKS)

    # The engine evaluates the grammar, so it is checked before any engine sees it.
    check_grammar(grammar, str(folder / GAME))
    match = _SENTENCE.search(grammar)
    sentence = match[1].strip() if match else ""
    return Game(name, goal, scene, sentence, domain, grammar, problem, str(folder / GAME))


def _is_playable(folder: Path, root: Path) -> bool:
    name = str(folder.relative_to(root))
    if "movable" in name or "Sliced" in name or not (folder / TRAJECTORY).is_file():
        return False
    return bool(_read(folder / GAME).get("solvable"))


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"{path} cannot be read ({reason}). {DOWNLOAD_AGAIN}") from error
    if not isinstance(data, dict):
        raise UserError(f"{path} is not a JSON object. {DOWNLOAD_AGAIN}")
    return data
