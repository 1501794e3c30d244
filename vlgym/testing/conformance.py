"""EnvConformance: the certificate as a pytest class.

    class TestMyEnv(EnvConformance):
        env_id = "myorg/MyEnv-v0"

Each property becomes one test; one that need not hold gives a warning. Families parametrise: `env_ids = ("myorg/A-v0",
"myorg/B-v0")`.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from ..registry import get_registry
from .checks import ALL_CHECKS, CHECKS, GAME_CHECKS, CheckWarning, Subject


class EnvConformance:
    """Subclass it and set `env_id` (or `env_ids`), and `env_kwargs` where the defaults are not what you test."""

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
        try:
            assert ALL_CHECKS[conformance_check](self._subjects[key])
        except CheckWarning as warning:
            warnings.warn(f"{conformance_id}: {conformance_check}: {warning}", stacklevel=2)


class GameConformance(EnvConformance):
    """The same for games of several agents, which must have more properties."""

    checks = (*CHECKS, *GAME_CHECKS)


def _one_worker_each(metafunc: Any, ids: tuple[str, ...]) -> list[Any]:
    """Keep an environment's checks in one worker of pytest-xdist (`--dist loadgroup`): they share its episodes."""
    import pytest

    if not metafunc.config.pluginmanager.hasplugin("xdist"):
        return list(ids)
    return [pytest.param(env_id, marks=pytest.mark.xdist_group(env_id)) for env_id in ids]
