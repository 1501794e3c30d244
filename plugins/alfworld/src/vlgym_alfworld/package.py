"""The installed `alfworld`: its files, an import without side effects, and TextWorld's engine made fast.

`import alfworld` makes a folder under the home directory and sets the environment variable
`ALFWORLD_DATA`; `import textworld` draws from NumPy's global generator. This import does neither:
the variable points at the package meanwhile; variable and generators are put back.

As shipped, a kitchen takes half a second to load, as long again to reset, and 0.1 s for a step:
every game is translated four times, and the text grammar is parsed again for every command of every
turn. `fast_engine()` replaces a handful of the engine's functions while it is entered, without
changing a byte of its answers: one translation a game, parsed texts remembered, no deep copies of
what nobody changes. On leaving, everything is as it was, `sys.argv` and `sys.stdout` included, which
`fast_downward` overwrites.
"""

import contextlib
import copy
import gc
import importlib
import importlib.util
import os
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from vlgym.errors import MissingSystemPartError
from vlgym.registry.installing import how_to_install

VARIABLE = "ALFWORLD_DATA"
DEFAULT_DATA = "~/.cache/alfworld"  # where `alfworld-download` puts the benchmark by default
DOWNLOAD_AGAIN = "Download it again: alfworld-download --force."
_FIX = (
    "ALFWorld needs the packages alfworld and textworld, partly built from source: run 'apt-get "
    f"install gcc g++ make cmake', then '{how_to_install('vlgym-alfworld')}'."
)
_LOCK = threading.RLock()
_TASK_RULE = re.compile(r'("rhs": "Your task is to: )([^"\\]*)(\.")')
_PLAIN = re.compile(r"[A-Za-z0-9 ,.'-]+")


def data_folder() -> Path:
    """Return the folder of the benchmark's data, `ALFWORLD_DATA` or the default; it need not exist."""
    return Path(os.environ.get(VARIABLE, "").strip() or DEFAULT_DATA).expanduser()


def import_quietly(name: str) -> ModuleType:
    """Import a module of `alfworld` or `textworld` or raise `MissingSystemPartError`."""
    with _LOCK, _process_set_aside():
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise MissingSystemPartError(f"{name} cannot be imported ({error}). {_FIX}") from error


@cache
def package_folder() -> Path:
    """Return the folder of the package, without importing it; `MissingSystemPartError` without one."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise MissingSystemPartError(f"The package alfworld is not installed. {_FIX}")
    return Path(spec.submodule_search_locations[0])


@cache
def read_data(name: str) -> str:
    """Return a text that the package ships: PDDL domain or text grammar."""
    return (package_folder() / "data" / name).read_text(encoding="utf-8")


@cache
def constants() -> ModuleType:
    """Return the package's tables: containment, action objects, scene numbers, room kinds."""
    return import_quietly("alfworld.gen.constants")


@cache
def goal_library() -> dict[str, dict[str, Any]]:
    """Return, by ALFRED task type, the PDDL goal and the sentences of the task."""
    library: dict[str, dict[str, Any]] = import_quietly("alfworld.gen.goal_library").gdict
    return library


@contextlib.contextmanager
def _process_set_aside() -> Iterator[None]:
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    before, wanted = os.environ.get(VARIABLE), data_folder()
    try:
        os.environ[VARIABLE] = str(package_folder())
        yield
        _correct_data_folder(wanted)
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def _correct_data_folder(folder: Path) -> None:
    """Give the imported package the value that it would have read, for other code of this process."""
    for name in ("alfworld", "alfworld.info"):
        module = importlib.import_module(name)
        if getattr(module, VARIABLE, None) == str(package_folder()):
            setattr(module, VARIABLE, str(folder))


@contextlib.contextmanager
def fast_engine() -> Iterator[None]:
    """Play with the fast functions inside. Re-entrant, one thread at a time."""
    with _LOCK:
        changes = replacements()
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in changes]
        argv, stdout = sys.argv, sys.stdout
        try:
            for owner, name, value in changes:
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)
            sys.argv, sys.stdout = argv, stdout


def forget_facts() -> None:
    """Drop the facts that TextWorld has interned for past games, half a megabyte a game.

    Facts compare by value, so those of a game that still runs stay good.
    """
    textworld_logic = importlib.import_module("textworld.logic")
    with _LOCK:
        interned = importlib.import_module("mementos.core")._memento_cache
        for key in [key for key in interned if key[0] is textworld_logic.Proposition]:
            del interned[key]


@lru_cache(maxsize=1)
def replacements() -> tuple[tuple[Any, str, Any], ...]:
    """Return owner, name and new function of each function that `fast_engine` replaces."""
    import_quietly("textworld")
    downward = importlib.import_module("fast_downward")
    textgen = importlib.import_module("textworld.envs.pddl.textgen")
    logic = importlib.import_module("textworld.envs.pddl.logic")
    queries = importlib.import_module("textworld.logic")
    stock = downward.pddl2sas
    copy_symbols = _copy_symbols(textgen.Symbol)

    # 0.4 MB each. A game that is begun again takes 0.03 s, not 0.15 s: each player of a floor does so.
    @lru_cache(maxsize=128)
    def translate(domain: str, problem: str) -> Any:
        argv, collecting = sys.argv, gc.isenabled()
        sys.argv = ["translate.py", "domain", "task"]  # `options` reads it when it is imported
        try:
            gc.disable()  # a third of the time: thousands of small tuples that all live on
            return stock(domain, problem)
        finally:
            sys.argv = argv
            if collecting:
                gc.enable()

    # The optimised translation serves the planner only, which never runs here.
    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        return translate(domain, problem)

    parse_text, parse_query = textgen._parse_and_convert, queries._parse_and_convert
    return (
        (downward, "pddl2sas", pddl2sas),
        (textgen, "_parse_and_convert", _remember(parse_text, copy_symbols)),
        (textgen, "copy_context", _copy_context),
        (textgen, "deepcopy", copy_symbols),
        (textgen, "check_flag", lambda name: False),  # looks up debugging variables for every symbol
        (queries.State, "facts", property(lambda state: list(chain.from_iterable(state._facts.values())))),
        (queries, "_parse_and_convert", _remember(parse_query, copy.copy)),
        (logic, "_parse_and_convert", _remember_grammar(logic, textgen)),
    )


def _remember(function: Callable[..., Any], fresh: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `function` with its results remembered; `fresh` makes what a caller may change."""
    results = lru_cache(maxsize=4096)(function)
    return lambda *args, **kwargs: fresh(results(*args, **kwargs))


def _remember_grammar(logic: ModuleType, textgen: ModuleType) -> Callable[..., Any]:
    """Return a parser that parses a grammar once for all tasks: games differ in one sentence."""
    stock = logic._parse_and_convert
    parsed = lru_cache(maxsize=8)(stock)

    def parse(text: str, rule_name: str = "pddlStart") -> Any:
        rules = _TASK_RULE.findall(text)
        if len(rules) != 1 or not _PLAIN.fullmatch(rules[0][1]):
            return stock(text, rule_name=rule_name)
        actions, shared = parsed(_TASK_RULE.sub(r"\g<1>UNKNOWN GOAL\g<3>", text), rule_name=rule_name)

        # Only the rule of the task is the game's own.
        grammar = textgen.ContextSensitiveGrammar()
        grammar.update(shared)
        rule = copy.copy(shared._rules["task"][0])
        rule.rhs = [textgen.TerminalSymbol(f"Your task is to: {rules[0][1]}.")]
        grammar._rules["task"] = [rule]
        return dict(actions), grammar

    return parse


def _copy_symbols(kind: type) -> Callable[[Any], Any]:
    """Return a function that copies symbols of the text grammar; a copy's context is set again."""

    def duplicate(value: Any) -> Any:
        if isinstance(value, list):
            return [duplicate(item) for item in value]
        if not isinstance(value, kind):
            return copy.deepcopy(value)
        made = copy.copy(value)
        for name in ("symbol", "expression"):
            part = getattr(made, name, None)
            if isinstance(part, kind):
                setattr(made, name, duplicate(part))
        return made

    return duplicate


def _copy_context(context: dict[str, Any]) -> dict[str, Any]:
    """Copy a context of the text grammar: two dicts, not the entities in them."""
    shared = {name: context[name] for name in ("state", "facts", "entity_infos")}
    return {**shared, **{name: dict(context[name]) for name in ("variables", "mapping")}}
