"""PDDL to SAS, fast: the same text, byte for byte, as the `fast_downward` package's own translation.

The package grounds a game with a general Datalog engine. ALFWorld's problems need little of that: all variables are
binary, effects are not quantified, no action depends on a derived fact. Under these conditions the translation is a
join over a few small relations, done here. Parser, normalizer, axioms and conditional effects stay the package's. A
task outside the conditions raises `Unsupported`, and the caller lets the package translate it.

What it is worth (docs/benchmarks.md): `reset` takes 48 ms instead of 99 ms with the package's own
translation, once a game (medians; 155 ms instead of 306 ms at the 95th percentile).

This is not a planner, and nothing here searches.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

from .joins import Fact, Relations, Schema, Unsupported, ground, list_literals

Condition = list[tuple[int, int]]
"""Variables and their values."""


Effect = tuple[int, int, int, Condition]
"""Variable, value before (-1: any), value after, conditions."""


class Operator(NamedTuple):
    """A row of the SAS text: name in brackets, conditions that stay, effects (variable, value before or -1, value
    after, conditions), cost.
    """

    name: str
    prevail: Condition
    pre_post: list[Effect]
    cost: int


class Axiom(NamedTuple):
    """A rule of the SAS text: conditions, and the derived variable with its value."""

    condition: Condition
    effect: tuple[int, int]


def to_sas(task: Any, package: Any) -> str:
    """Return the SAS text of a normalized task.

    Args:
        task: the package's task, after its `normalize`.
        package: the module `fast_downward.translate.translate` (its options set for a plain translation).

    Raises:
        Unsupported: the task is outside what this translation covers.
    """
    types = _objects_by_type(task)
    actions = [(action, Schema(action.parameters, action.precondition, types)) for action in task.actions]
    axioms = [(axiom, Schema(axiom.parameters, axiom.condition, types)) for axiom in task.axioms]
    fluents = {effect.literal.predicate for action in task.actions for effect in action.effects}
    _check(task)
    relations = Relations()
    for atom in task.init:
        if isinstance(atom, package.pddl.Atom):
            relations.add((atom.predicate, *atom.args))
    initial = frozenset(relations.facts)
    instances = _reach(actions, relations)
    derived = {axiom.name: schema.instances(relations) for axiom, schema in axioms}
    fluents |= set(derived)
    for axiom, _ in axioms:
        if derived[axiom.name]:
            relations.add((axiom.name,))
    goals = list(task.goal.parts) if isinstance(task.goal, package.pddl.Conjunction) else [task.goal]
    if not all(not goal.negated and (goal.predicate, *goal.args) in relations.facts for goal in goals):
        raise Unsupported("the goal cannot be reached")

    variables = sorted(fact for fact in relations.facts if fact[0] in fluents)
    number = {fact: index for index, fact in enumerate(variables)}
    writer = _Writer(number, initial, task, package)
    operators = sorted(
        row
        for (action, schema), found in zip(actions, instances, strict=True)
        for row in writer.operators(action, schema, found)
    )
    rules, layers = writer.axioms(axioms, derived, goals)
    wanted = sorted(
        (number[(goal.predicate, *goal.args)], 0) for goal in goals if (goal.predicate, *goal.args) in number
    )
    order = (
        _order(package, operators, rules, wanted, len(variables))
        if package.options.reorder_variables
        else list(range(len(variables)))
    )
    return _write(
        task,
        [variables[var] for var in order],
        initial,
        operators,
        rules,
        layers,
        wanted,
        {var: place for place, var in enumerate(order)},
    )


def _order(package: Any, operators: list[Operator], axioms: list[Axiom], goal: Condition, count: int) -> list[int]:
    """Return the variables in the order of the package's causal graph."""
    shape = SimpleNamespace(
        operators=operators,
        axioms=axioms,
        variables=SimpleNamespace(ranges=[2] * count),
        goal=SimpleNamespace(pairs=goal),
    )
    order: list[int] = package.variable_order.CausalGraph(shape).get_ordering()
    return order


def _write(
    task: Any,
    variables: list[Fact],
    initial: frozenset[Fact],
    operators: list[Operator],
    axioms: list[Axiom],
    layers: dict[int, int],
    goal: Condition,
    place: dict[int, int],
) -> str:
    """Return the whole SAS text, version 3; `place` is the new number of each variable."""
    layer_at = {place[var]: layer for var, layer in layers.items()}
    lines = [
        "begin_version",
        "3",
        "end_version",
        "begin_metric",
        str(int(task.use_min_cost_metric)),
        "end_metric",
        str(len(variables)),
    ]
    for index, fact in enumerate(variables):
        said = f"{fact[0]}({', '.join(fact[1:])})"
        lines += [
            "begin_variable",
            f"var{index}",
            str(layer_at.get(index, -1)),
            "2",
            f"Atom {said}",
            f"NegatedAtom {said}",
            "end_variable",
        ]
    lines += ["0", "begin_state", *("0" if fact in initial else "1" for fact in variables), "end_state"]
    lines += [
        "begin_goal",
        str(len(goal)),
        *(f"{var} {value}" for var, value in sorted((place[var], value) for var, value in goal)),
        "end_goal",
    ]
    lines.append(str(len(operators)))
    for name, prevail, effects, cost in operators:
        lines += [
            "begin_operator",
            name[1:-1],
            str(len(prevail)),
            *(f"{place[var]} {value}" for var, value in prevail),
            str(len(effects)),
        ]
        for var, before, after, conditions in effects:
            guard = "".join(f"{place[one]} {value} " for one, value in conditions)
            lines.append(f"{len(conditions)} {guard}{place[var]} {before} {after}")
        lines += [str(cost), "end_operator"]
    lines.append(str(len(axioms)))
    for condition, (var, value) in axioms:
        lines += ["begin_rule", str(len(condition)), *(f"{place[one]} {held}" for one, held in condition)]
        lines += [f"{place[var]} {1 - value} {value}", "end_rule"]
    return "\n".join(lines) + "\n"


def _reach(actions: list[tuple[Any, Schema]], relations: Relations) -> list[list[tuple[str, ...]]]:
    """Add every fact that some sequence of actions could make true, delete effects and negative conditions aside.

    Returns:
        For each action its instances, once nothing is left to add.
    """
    adds, reads = [], []
    for action, schema in actions:
        effects = [
            (effect.literal, list(list_literals(effect.condition)))
            for effect in action.effects
            if not effect.literal.negated
        ]
        adds.append(
            [
                (schema.lift(literal), [schema.lift(one) for one in needed if not one.negated])
                for literal, needed in effects
            ]
        )
        conditions = [one for _, needed in adds[-1] for one in needed]
        reads.append({str(literal[0]) for literal in (*schema.positive, *conditions)})
    instances: list[list[tuple[str, ...]]] = [[] for _ in actions]
    seen: list[int] = [-1 for _ in actions]
    while True:
        sizes = [sum(len(relations.rows[name]) for name in names) for names in reads]
        stale = [index for index, size in enumerate(sizes) if seen[index] != size]
        if not stale:
            return instances
        for index in stale:
            seen[index] = sum(len(relations.rows[name]) for name in reads[index])
            instances[index] = actions[index][1].instances(relations)
            for lifted, needed in adds[index]:
                for binding in instances[index]:
                    if all(ground(condition, binding) in relations.facts for condition in needed):
                        relations.add(ground(lifted, binding))


class _Writer:
    """Turns instances into rows of the SAS text; `number` is the variable of each fluent fact (value 0: true, 1:
    false).
    """

    def __init__(self, number: dict[Fact, int], initial: frozenset[Fact], task: Any, package: Any) -> None:
        self.number, self.initial, self.task, self.package = number, initial, task, package
        atom = package.pddl.Atom
        self._fluent_atoms = {atom(fact[0], fact[1:]) for fact in number}
        self._initial_atoms = {item for item in task.init if isinstance(item, atom)}

    def operators(self, action: Any, schema: Schema, instances: list[tuple[str, ...]]) -> Iterator[Operator]:
        """Yield the instances that change anything."""
        if any(list(list_literals(effect.condition)) for effect in action.effects):
            yield from self._conditional(action, schema, instances)
            return
        cost = _cost(action, self.task.use_min_cost_metric)
        adds = [schema.lift(effect.literal) for effect in action.effects if not effect.literal.negated]
        deletes = [schema.lift(effect.literal) for effect in action.effects if effect.literal.negated]
        shown = action.num_external_parameters
        for binding in instances:
            conditions = self._conditions(schema, binding)
            if conditions is None:
                continue
            changes = {
                self.number[fact]: 1 for fact in (ground(one, binding) for one in deletes) if fact in self.number
            }
            changes.update({self.number[ground(one, binding)]: 0 for one in adds})
            effects: list[Effect] = [
                (var, conditions.get(var, -1), value, [])
                for var, value in sorted(changes.items())
                if conditions.get(var) != value
            ]
            if effects:
                changed = {effect[0] for effect in effects}
                prevail = sorted((var, value) for var, value in conditions.items() if var not in changed)
                yield Operator(f"({action.name} {' '.join(binding[:shown])})", prevail, effects, cost)

    def _conditions(self, schema: Schema, binding: tuple[str, ...]) -> dict[int, int] | None:
        """Return the fluent preconditions as variable and value; `None` where they contradict the constant facts or
        each other.
        """
        conditions: dict[int, int] = {}
        for literal in schema.positive:
            var = self.number.get(ground(literal, binding))
            if var is not None:
                conditions[var] = 0
        for literal in schema.negative:
            fact = ground(literal, binding)
            var = self.number.get(fact)
            if var is None:
                if fact in self.initial:
                    return None
            elif conditions.setdefault(var, 1) != 1:
                return None
        return conditions

    def _conditional(self, action: Any, schema: Schema, instances: list[tuple[str, ...]]) -> Iterator[Operator]:
        """As `operators`, through the package's own functions."""
        ranges = [2] * len(self.number)
        dictionary = {self.package.pddl.Atom(fact[0], fact[1:]): [(var, 0)] for fact, var in self.number.items()}
        for binding in instances:
            mapping = {name: binding[slot] for name, slot in schema.slots.items()}
            grounded = action.instantiate(
                mapping, self._initial_atoms, {}, self._fluent_atoms, {}, self.task.use_min_cost_metric
            )
            if grounded is not None:
                for made in self.package.translate_strips_operator(
                    grounded, dictionary, ranges, dictionary, ranges, {}
                ):
                    yield Operator(made.name, made.prevail, made.pre_post, made.cost)

    def axioms(
        self, axioms: list[tuple[Any, Schema]], derived: dict[str, list[tuple[str, ...]]], goals: list[Any]
    ) -> tuple[list[Axiom], dict[int, int]]:
        """Return the rules, sorted, and the layer of each derived variable."""
        grounded = []
        for axiom, schema in axioms:
            for binding in derived[axiom.name]:
                mapping = {name: binding[slot] for name, slot in schema.slots.items()}
                made = axiom.instantiate(mapping, self._initial_atoms, self._fluent_atoms)
                if made:
                    grounded.append(made)
        kept, layers = self.package.axiom_rules.handle_axioms(
            [], sorted(grounded), goals, self.package.options.layer_strategy
        )
        rows = []
        for axiom in kept:
            condition = {self.number[(one.predicate, *one.args)]: int(one.negated) for one in axiom.condition}
            effect = (self.number[(axiom.effect.predicate, *axiom.effect.args)], int(axiom.effect.negated))
            rows.append(Axiom(sorted(condition.items()), effect))
        return sorted(rows), {self.number[(atom.predicate, *atom.args)]: layer for atom, layer in layers.items()}


def _objects_by_type(task: Any) -> dict[str, set[str]]:
    supertypes = {kind.name: kind.supertype_names for kind in task.types}
    members: dict[str, set[str]] = {name: set() for name in supertypes}
    for item in task.objects:
        for name in (item.type_name, *supertypes[item.type_name]):
            members[name].add(item.name)
    return members


def _cost(action: Any, metric: bool) -> int:
    if not metric:
        return 1
    if action.cost is None:
        return 0
    value = getattr(action.cost.expression, "value", None)
    if value is None:
        raise Unsupported("a cost that depends on the objects")
    return int(value)


def _check(task: Any) -> None:
    """Refuse what the direct translation does not cover."""
    derived = {axiom.name for axiom in task.axioms}
    if len(derived) != len(task.axioms) or any(axiom.num_external_parameters for axiom in task.axioms):
        raise Unsupported("derived facts with parameters or several rules")
    for action in task.actions:
        if any(effect.parameters for effect in action.effects):
            raise Unsupported("quantified effects")
        for literal in list_literals(action.precondition):
            if literal.predicate in derived:
                raise Unsupported("a precondition on a derived fact")
        _cost(action, task.use_min_cost_metric)
    for axiom in task.axioms:
        for literal in list_literals(axiom.condition):
            if literal.predicate in derived:
                raise Unsupported("derived facts of derived facts")
