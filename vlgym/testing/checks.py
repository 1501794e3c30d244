"""The properties that every environment must have, by name, in the order in which they are tested.

Each has one function: it returns its evidence in a line, or raises `CheckFailure`. `EnvConformance`
is the certificate of `vlgym check` as a pytest class: each property is one test, and one that need
not hold gives a warning.

    class TestMyEnv(EnvConformance):
        env_id = "myorg/MyEnv-v0"

A family tests several with `env_ids = ("myorg/A-v0", "myorg/B-v0")`.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from ..errors import UserError, check_choice
from ..games.multi import MultiVLEnv
from ..registry import get_registry
from ..registry.making import load_class
from . import (
    conduct_checks,
    game_checks,
    interface_checks,
    measure,
    play_checks,
    sight_checks,
    world_checks,
)
from .subject import CheckFailure, CheckResult, CheckWarning, Subject


def _by_name(*checks: Callable[[Subject], str]) -> dict[str, Callable[[Subject], str]]:
    return {check.__name__.removeprefix("check_"): check for check in checks}


CHECKS = _by_name(
    interface_checks.check_card, interface_checks.check_gymnasium, play_checks.check_values,
    play_checks.check_endings, sight_checks.check_picture, sight_checks.check_render,
    sight_checks.check_looking, sight_checks.check_described, sight_checks.check_leak,
    conduct_checks.check_conduct, conduct_checks.check_words, play_checks.check_determinism,
    play_checks.check_history, world_checks.check_processes, play_checks.check_state,
    play_checks.check_copies, play_checks.check_oracle, play_checks.check_floor,
    measure.check_levels, play_checks.check_silence, sight_checks.check_blind,
    play_checks.check_rewards, conduct_checks.check_garbage, play_checks.check_turn_limit,
    interface_checks.check_parsers, interface_checks.check_parser_time, interface_checks.check_prompt,
    interface_checks.check_reset_options, play_checks.check_fresh, world_checks.check_side_effects,
    world_checks.check_resources, interface_checks.check_vector, interface_checks.check_splits,
    interface_checks.check_recorded,
)  # fmt: skip

GAME_CHECKS = _by_name(
    game_checks.check_seats, game_checks.check_zero_sum, game_checks.check_hidden,
    game_checks.check_at_once, game_checks.check_symmetry,
)  # fmt: skip
"""The further properties of games of several agents."""

ALL_CHECKS = {**CHECKS, **GAME_CHECKS}


def checks_for(env_id: str) -> list[str]:
    """Return the names of the properties that an environment must have.

    Raises:
        UserError: the id cannot be made.
    """
    spec = get_registry().get(env_id)
    several = issubclass(load_class(spec), MultiVLEnv)
    return [name for name in (ALL_CHECKS if several else CHECKS) if name != "levels" or spec.levels]


def _one_worker_each(metafunc: Any, ids: tuple[str, ...]) -> list[Any]:
    """Keep an environment's checks, which share episodes, in one worker of pytest-xdist."""
    import pytest

    if not metafunc.config.pluginmanager.hasplugin("xdist"):
        return list(ids)
    return [pytest.param(env_id, marks=pytest.mark.xdist_group(env_id)) for env_id in ids]


class EnvConformance:
    """Subclass it and set `env_id` (or `env_ids`), and `env_kwargs` over the defaults."""

    env_id: ClassVar[str] = ""
    env_ids: ClassVar[tuple[str, ...]] = ()
    env_kwargs: ClassVar[dict[str, Any]] = {}
    garbage: ClassVar[int] = 300
    checks: ClassVar[tuple[str, ...]] = tuple(CHECKS)
    _subjects: ClassVar[dict[tuple[type, str], Subject]] = {}

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Parametrise over the ids and the checks."""
        ids = self.env_ids or (self.env_id,)
        if {"conformance_id", "conformance_check"} <= set(metafunc.fixturenames):
            metafunc.parametrize("conformance_id", _one_worker_each(metafunc, ids))
            metafunc.parametrize("conformance_check", list(self.checks))

    def test_contract(self, conformance_id: str, conformance_check: str) -> None:
        """One property of one environment."""
        key = (type(self), conformance_id)
        if key not in self._subjects:
            spec = get_registry().get(conformance_id)
            self._subjects[key] = Subject(spec, dict(self.env_kwargs), self.garbage)
        with closing(self._subjects[key]) as subject:
            try:
                assert ALL_CHECKS[conformance_check](subject)
            except CheckWarning as warning:
                warnings.warn(f"{conformance_id}: {conformance_check}: {warning}", stacklevel=2)


class GameConformance(EnvConformance):
    """The same for games of several agents, which must have more properties."""

    checks = (*CHECKS, *GAME_CHECKS)


@dataclass(frozen=True)
class Certificate:
    """Results of all checks on one environment."""

    env_id: str
    results: tuple[CheckResult, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def warnings(self) -> int:
        """Number of optional properties that do not hold."""
        return sum(result.warning for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        results = [asdict(result) for result in self.results]
        return {"id": self.env_id, "passed": self.passed, "seconds": round(self.seconds, 1), "checks": results}


def certify(
    env_id: str,
    kwargs: dict[str, Any] | None = None,
    *,
    only: Iterable[str] | None = None,
    on_result: Callable[[CheckResult], None] | None = None,
) -> Certificate:
    """Run the checks (all, or those named in `only`) on an installed environment.

    Raises:
        UserError: the id cannot be made, or a check is unknown.
    """
    subject = Subject(get_registry().get(env_id), dict(kwargs or {}))
    names = checks_for(env_id) if only is None else list(only)
    for name in names:
        check_choice("check", name, ALL_CHECKS)

    # A caller shows each result when it is there.
    begun = time.perf_counter()
    results = []
    for name in names:
        results.append(run_check(name, subject))
        if on_result is not None:
            on_result(results[-1])
    return Certificate(env_id, tuple(results), time.perf_counter() - begun)


def run_check(name: str, subject: Subject) -> CheckResult:
    """Run one check; anything it raises is a failure with the exception as evidence."""
    try:
        with closing(subject):
            return CheckResult(name, True, ALL_CHECKS[name](subject))
    except CheckWarning as warning:
        return CheckResult(name, True, str(warning), warning=True)
    except (CheckFailure, UserError) as error:
        return CheckResult(name, False, str(error))
    except Exception as error:
        return CheckResult(name, False, f"{type(error).__name__}: {error}")
