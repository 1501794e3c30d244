"""Make TextWorld's PDDL engine fast enough to play, without changing a byte of what it says.

As shipped, a kitchen takes half a second to load, as long again to reset, and 0.1 s for a step: every game is
translated four times, and the text grammar is parsed again for every command of every turn. `fast_engine()` replaces a
handful of the engine's functions while it is entered: one translation a game, parsed texts remembered, no deep copies
of what nobody changes. On leaving, everything is as it was. The tests compare whole transcripts with the untouched
engine.

It also keeps the package's side effects in: `fast_downward` overwrites `sys.argv` and swaps `sys.stdout`.
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
_PLACEHOLDER = "UNKNOWN GOAL"


@contextlib.contextmanager
def fast_engine() -> Iterator[None]:
    """Play with the fast functions inside; restore the engine and `sys.argv` on leaving. Re-entrant, one thread at
    a time.
    """
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
    """Drop the facts that TextWorld has interned for games gone by: it keeps every one, half a megabyte a game.

    Facts compare by value, so those of a game that still runs stay good.
    """
    textworld_logic = importlib.import_module("textworld.logic")
    with _LOCK:
        interned = importlib.import_module("mementos.core")._memento_cache
        for key in [key for key in interned if key[0] is textworld_logic.Proposition]:
            del interned[key]


@lru_cache(maxsize=1)
def replacements() -> tuple[tuple[Any, str, Any], ...]:
    """Return what `fast_engine` replaces: owner, name, and the function that takes the place; made once."""
    import_quietly("textworld")
    downward = importlib.import_module("fast_downward")
    textgen = importlib.import_module("textworld.envs.pddl.textgen")
    logic = importlib.import_module("textworld.envs.pddl.logic")
    queries = importlib.import_module("textworld.logic")
    # 0.4 MB each; without, a game that is begun again, as each player of a floor does, takes 0.15 s instead of 0.03 s.
    translated = lru_cache(maxsize=128)(_translator(downward.pddl2sas))

    def pddl2sas(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        # The optimised translation serves the planner only, which never runs here; the plain one serves it too.
        return translated(domain, problem)

    return (
        (downward, "pddl2sas", pddl2sas),
        (textgen, "_parse_and_convert", _remember(textgen._parse_and_convert, _copy_symbols(textgen.Symbol))),
        (textgen, "copy_context", _copy_context),
        (textgen, "deepcopy", _copy_symbols(textgen.Symbol)),
        (textgen, "check_flag", lambda name: False),  # debugging variables, looked up for every symbol
        (queries.State, "facts", property(_all_facts)),
        (queries, "_parse_and_convert", _remember(queries._parse_and_convert, copy.copy)),
        (logic, "_parse_and_convert", _remember_grammar(logic, textgen)),
    )


def _translator(stock: Callable[..., Any]) -> Callable[[str, str], Any]:
    def translate(domain: str, problem: str) -> Any:
        """Return the package's task and the SAS text of its plain translation."""
        argv = sys.argv
        sys.argv = ["translate.py", "domain", "task"]  # the module `options` reads the command line when it is imported
        collecting = gc.isenabled()
        try:
            gc.disable()  # thousands of small tuples that all live on: a third of the time is spent looking for garbage
            return stock(domain, problem)
        finally:
            sys.argv = argv
            if collecting:
                gc.enable()

    return translate


def _remember(function: Callable[..., Any], fresh: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return `function` with its results remembered; `fresh` makes what a caller may change."""
    results = lru_cache(maxsize=4096)(function)

    def remembered(*args: Any, **kwargs: Any) -> Any:
        return fresh(results(*args, **kwargs))

    return remembered


def _remember_grammar(logic: ModuleType, textgen: ModuleType) -> Callable[..., Any]:
    """Return a parser of game grammars that parses a grammar once for all tasks: games differ in one sentence."""
    stock = logic._parse_and_convert
    parsed = lru_cache(maxsize=8)(stock)

    def parse(text: str, rule_name: str = "pddlStart") -> Any:
        rules = _TASK_RULE.findall(text)
        if len(rules) != 1 or not _PLAIN.fullmatch(rules[0][1]):
            return stock(text, rule_name=rule_name)
        actions, shared = parsed(_TASK_RULE.sub(rf"\g<1>{_PLACEHOLDER}\g<3>", text), rule_name=rule_name)
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
    """Return a function that copies symbols of the text grammar; their contexts are set again after a copy."""

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
    """Copy a context of the text grammar as far as it is changed: two dicts, not the entities in them."""
    return {
        "state": context["state"],
        "facts": context["facts"],
        "variables": dict(context["variables"]),
        "mapping": dict(context["mapping"]),
        "entity_infos": context["entity_infos"],
    }
