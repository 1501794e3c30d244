"""A certificate: every property of the contract with pass or fail and its evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import UserError, check_choice
from ..registry import get_registry
from .checks import ALL_CHECKS, RFC_008, checks_for
from .subject import CheckFailure, CheckResult, CheckWarning, Subject


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
        """Return plain data; `rfc008` holds the names that OpenEnv's RFC 008 has for a property."""
        results = [{**asdict(result), "rfc008": list(RFC_008.get(result.name, ()))} for result in self.results]
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
        return CheckResult(name, True, ALL_CHECKS[name](subject))
    except CheckWarning as warning:
        return CheckResult(name, True, str(warning), warning=True)
    except (CheckFailure, UserError) as error:
        return CheckResult(name, False, str(error))
    except Exception as error:
        return CheckResult(name, False, f"{type(error).__name__}: {error}")
