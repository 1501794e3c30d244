"""Make TextWorld's PDDL engine fast enough to play, without changing a byte of its answers.

As shipped, a kitchen takes half a second to load, as long again to reset, and 0.1 s for a step:
every game is translated four times, and the text grammar is parsed again for every command of every
turn. `fast_engine()` replaces a handful of the engine's functions while it is entered: one
translation a game, parsed texts remembered, no deep copies of what nobody changes. On leaving,
everything is as it was, `sys.argv` and `sys.stdout` included, which `fast_downward` overwrites.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import importlib
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from .package import import_quietly

_LOCK = threading.RLock()
_TASK_RULE = re.compile(r'("rhs": "Your task is to: )([^"\\]*)(\.")')
_PLAIN = re.compile(r"[A-Za-z0-9 ,.'-]+")


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
        (queries.State, "facts", property(_all_facts)),
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


def _all_facts(state: Any) -> list[Any]:
    """Return the facts of a state in the engine's order, without a generator's cost."""
    return list(itertools.chain.from_iterable(state._facts.values()))


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
