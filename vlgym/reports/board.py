"""Many results side by side: by environment, by family, by skill and over all, best first.

Means count each environment once. Their intervals are made of the environments' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ..registry import get_registry
from ..spec import EnvSpec
from .results import Line, Result, Value
from .sampling import average_intervals


@dataclass(frozen=True)
class Place:
    """Where a result stands in a ranking.

    Attributes:
        result: whose it is.
        value: mean normalized score, the measure of the ranking.
        success: mean success on the same environments.
        count: number of environments that the means are of.
        sight: mean sight score, 0 where no sight is needed, of those environments whose blind floor was measured;
            `None` without such.
        seen: number of environments that `sight` is of.
    """

    result: Result
    value: Value
    success: Value
    count: int
    sight: Value | None = None
    seen: int = 0


@dataclass(frozen=True)
class Ranking:
    """Results on one group of environments.

    Attributes:
        title: name of the group.
        size: number of its environments in registry.yaml.
        places: best first.
    """

    title: str
    size: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Task:
    """Results on one environment, planner and suite.

    Attributes:
        title: what was played.
        family: the environment's family.
        lines: result and its part, best first.
    """

    title: str
    family: str
    lines: tuple[tuple[Result, Line], ...]

    @property
    def scored(self) -> bool:
        """Whether the benchmark's own score exists here."""
        return any(line.score is not None for _, line in self.lines)


def rank_all(results: Sequence[Result]) -> Ranking:
    """Return all results over all environments that each was played on, those on most environments first."""
    ranking = _rank("all environments", results, lambda spec: True)
    return replace(ranking, places=tuple(sorted(ranking.places, key=lambda place: -place.count)))


def rank_families(results: Sequence[Result]) -> list[Ranking]:
    """Return a ranking for each family that was played, in alphabetical order."""
    return _rank_groups(results, lambda spec: [spec.family])


def rank_skills(results: Sequence[Result]) -> list[Ranking]:
    """Return a ranking for each skill that was played and that several environments ask for, the commonest first."""
    rankings = [ranking for ranking in _rank_groups(results, lambda spec: spec.skills) if ranking.size > 1]
    return sorted(rankings, key=lambda ranking: (-ranking.size, ranking.title))


def list_tasks(results: Sequence[Result]) -> list[Task]:
    """Return each task that was played, by family and id."""
    found: dict[tuple[str, str, str, str], list[tuple[Result, Line]]] = {}
    for result in results:
        for line in result.lines:
            family = get_registry().known[line.env_id]["spec"].family
            found.setdefault((family, line.env_id, line.suite, line.planner), []).append((result, line))
    return [
        Task(" ".join(filter(None, (env_id, suite, planner if suite or planner != "online" else ""))), family, rows)
        for (family, env_id, suite, planner), lines in sorted(found.items(), key=lambda item: item[0])
        if (rows := tuple(sorted(lines, key=_order)))
    ]


def _order(row: tuple[Result, Line]) -> tuple[float, str]:
    result, line = row
    measure = line.score if line.suite and line.score is not None else line.returned
    return -measure, result.name


def _rank_groups(results: Sequence[Result], groups_of: Callable[[EnvSpec], Iterable[str]]) -> list[Ranking]:
    titles = sorted({title for entry in get_registry().known.values() for title in groups_of(entry["spec"])})
    rankings = [_rank(title, results, lambda spec, title=title: title in groups_of(spec)) for title in titles]  # type: ignore[misc]
    return [ranking for ranking in rankings if ranking.places]


def _rank(title: str, results: Sequence[Result], belongs: Callable[[EnvSpec], bool]) -> Ranking:
    specs = {env_id: entry["spec"] for env_id, entry in get_registry().known.items()}
    places = []
    for result in results:
        lines = [
            line
            for line in result.lines
            if not line.suite
            and line.planner == "online"
            and line.normalized is not None
            and belongs(specs[line.env_id])
        ]
        if lines:
            value = _average([line.normalized for line in lines if line.normalized is not None])
            sights = [line.sight for line in lines if line.sight is not None]
            sight = _average(sights) if sights else None
            success = _average([line.success for line in lines])
            places.append(Place(result, value, success, len(lines), sight, len(sights)))
    places.sort(key=lambda place: (-place.value.mean, place.result.name))
    return Ranking(title, sum(map(belongs, specs.values())), tuple(places))


def _average(values: Sequence[Value]) -> Value:
    mean = sum(value.mean for value in values) / len(values)
    ends = [(value.mean, value.low, value.high) for value in values if value.low is not None and value.high is not None]
    return Value(mean, *average_intervals(ends)) if len(ends) == len(values) else Value(mean)
