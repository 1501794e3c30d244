"""Relations and joins: which instances of a lifted action have all their positive conditions among a set of facts.

General over STRIPS-like conditions (conjunctions of literals); it knows nothing of SAS. `grounding` builds on it, and
says what both are worth: `reset` is 2.1 times as fast with them (docs/benchmarks.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Fact = tuple[str, ...]
"""Predicate and arguments."""

Lifted = tuple[int | str, ...]
"""Predicate and arguments, a parameter as its slot."""


class Unsupported(Exception):
    """The task uses something that this translation does not cover; the package's own does."""


@dataclass
class Relations:
    """The facts reached so far, by predicate, with indices made on demand.

    Attributes:
        facts: all of them.
        rows: arguments by predicate.
    """

    facts: set[Fact] = field(default_factory=set)
    rows: dict[str, list[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(list))
    _indices: dict[tuple[str, tuple[int, ...]], dict[tuple[str, ...], list[tuple[str, ...]]]] = field(
        default_factory=dict
    )

    def add(self, fact: Fact) -> bool:
        """Add a fact; return whether it is new."""
        if fact in self.facts:
            return False
        self.facts.add(fact)
        predicate, row = fact[0], fact[1:]
        self.rows[predicate].append(row)
        for (name, positions), index in self._indices.items():
            if name == predicate:
                index.setdefault(tuple(row[i] for i in positions), []).append(row)
        return True

    def find(self, predicate: str, positions: tuple[int, ...], key: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the rows of a predicate with the values `key` at `positions`."""
        index = self._indices.get((predicate, positions))
        if index is None:
            index = {}
            for row in self.rows[predicate]:
                index.setdefault(tuple(row[i] for i in positions), []).append(row)
            self._indices[(predicate, positions)] = index
        return index.get(key, [])


@dataclass(frozen=True)
class _Step:
    """One literal of a join: its predicate, which of its arguments are bound already (from slots or constants), which
    it binds.
    """

    predicate: str
    bound: tuple[int, ...]
    key: tuple[int | str, ...]
    binds: tuple[tuple[int, int], ...]


class Schema:
    """A lifted action or axiom: parameters by slot, literals with slots (or constants) for arguments, and the order of
    its join.
    """

    def __init__(self, parameters: Any, condition: Any, types: dict[str, set[str]]) -> None:
        self.slots = {parameter.name: slot for slot, parameter in enumerate(parameters)}
        # The shipped domain writes "?l - location, ?r": a type "location," that nothing has. So does the package.
        self.allowed = [types.get(parameter.type_name, set()) for parameter in parameters]
        literals = list(list_literals(condition))
        self.positive = [self.lift(literal) for literal in literals if not literal.negated]
        self.negative = [self.lift(literal) for literal in literals if literal.negated]

    def lift(self, literal: Any) -> Lifted:
        """Return predicate and arguments, a parameter as its slot."""
        return (literal.predicate, *(self.slots.get(argument, argument) for argument in literal.args))

    def instances(self, relations: Relations) -> list[tuple[str, ...]]:
        """Return all bindings whose positive literals are among the facts, each argument of its type."""
        bindings: list[list[str]] = [[""] * len(self.slots)]
        for step in self._plan(relations):
            bindings = list(self._extend(bindings, step, relations))
        unbound = set(self.slots.values()) - {
            slot for literal in self.positive for slot in literal[1:] if isinstance(slot, int)
        }
        for slot in sorted(unbound):
            bindings = [
                [*row[:slot], value, *row[slot + 1 :]] for row in bindings for value in sorted(self.allowed[slot])
            ]
        return [tuple(row) for row in bindings]

    def _extend(self, bindings: list[list[str]], step: _Step, relations: Relations) -> Iterator[list[str]]:
        allowed = [self.allowed[slot] for _, slot in step.binds]
        for binding in bindings:
            key = tuple(binding[part] if isinstance(part, int) else part for part in step.key)
            for row in relations.find(step.predicate, step.bound, key):
                values = [row[position] for position, _ in step.binds]
                if all(value in kind for value, kind in zip(values, allowed, strict=True)):
                    extended = binding.copy()
                    for (_, slot), value in zip(step.binds, values, strict=True):
                        extended[slot] = value
                    yield extended

    def _plan(self, relations: Relations) -> list[_Step]:
        """Order the literals: most bound arguments first, then the smallest relation."""
        left, known, steps = list(self.positive), set[int](), list[_Step]()
        while left:
            literal = min(
                left,
                key=lambda one: (
                    -sum(not isinstance(arg, int) or arg in known for arg in one[1:]),
                    len(relations.rows[str(one[0])]),
                ),
            )
            left.remove(literal)
            bound, binds = list[tuple[int, int | str]](), dict[int, int]()
            for position, argument in enumerate(literal[1:]):
                if isinstance(argument, int) and argument not in known:
                    if argument in binds.values():
                        raise Unsupported("a literal names a parameter twice")
                    binds[position] = argument
                else:
                    bound.append((position, argument))
            known.update(binds.values())
            steps.append(
                _Step(
                    str(literal[0]),
                    tuple(p for p, _ in bound),
                    tuple(argument for _, argument in bound),
                    tuple(binds.items()),
                )
            )
        return steps


def ground(literal: Lifted, binding: tuple[str, ...]) -> Fact:
    """Return the fact that a lifted literal is under a binding."""
    return tuple([binding[part] if isinstance(part, int) else part for part in literal])


def list_literals(condition: Any) -> Iterator[Any]:
    """Yield the literals of a normalized condition."""
    kind = type(condition).__name__
    if kind in ("Atom", "NegatedAtom"):
        yield condition
    elif kind == "Conjunction":
        for part in condition.parts:
            yield from list_literals(part)
    elif kind != "Truth":
        raise Unsupported(f"a condition of kind {kind}")
