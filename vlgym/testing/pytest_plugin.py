"""The certificate for pytest without a line of test code.

    [tool.pytest.ini_options]
    addopts = "-p vlgym.testing.pytest_plugin"
    vlgym_envs = ["tea-room/TeaRoom-v0"]

Each property of each environment becomes a test, `tea-room/TeaRoom-v0::floor` for example. `--vlgym-env ID` names
environments on the command line instead. It is not loaded by itself, so that projects which do not ask for it do not
pay for importing it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import pytest

from ..errors import VlgymError
from ..registry import get_registry
from .checks import ALL_CHECKS, CheckWarning, Subject, checks_for
from .conformance import EnvConformance


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting."""
    group = parser.getgroup("vlgym")
    group.addoption(
        "--vlgym-env", action="append", default=[], metavar="ID", dest="vlgym_envs",
        help="test the whole contract of this environment; may be repeated, and replaces the setting vlgym_envs",
    )  # fmt: skip
    parser.addini("vlgym_envs", "environments whose whole contract is tested", type="args", default=[])


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the properties of the environments behind the collected tests."""
    for env_id in dict.fromkeys(config.getoption("vlgym_envs") or config.getini("vlgym_envs")):
        items.extend(_collect(session, env_id))


def _collect(session: pytest.Session, env_id: str) -> Iterable[pytest.Item]:
    subject = _Subjects(env_id)
    try:
        checks = checks_for(env_id)
    except VlgymError as error:
        raise pytest.UsageError(f"vlgym_envs: {error}") from None
    for check in checks:
        item = ContractItem.from_parent(session, name=check, nodeid=f"{env_id}::{check}", check=check, subject=subject)
        if session.config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group(env_id))  # they share episodes: one worker
        yield item


class _Subjects:
    """The episodes that an environment's properties share; made when the first one is tested."""

    def __init__(self, env_id: str) -> None:
        self.env_id = env_id
        self.subject: Subject | None = None

    def get(self) -> Subject:
        if self.subject is None:
            self.subject = Subject(get_registry().get(self.env_id), {}, EnvConformance.garbage)
        return self.subject


class ContractItem(pytest.Item):
    """One property of one environment."""

    def __init__(self, *, check: str, subject: _Subjects, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check, self.subject = check, subject

    def runtest(self) -> None:
        """Test the property; one that need not hold gives a warning."""
        try:
            assert ALL_CHECKS[self.check](self.subject.get()), "the check says nothing of what it saw"
        except CheckWarning as warning:
            warnings.warn(f"{self.nodeid}: {warning}", stacklevel=2)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Say what does not hold, without the kit's own lines."""
        if isinstance(excinfo.value, AssertionError):
            return f"{self.nodeid}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where a report places it."""
        return self.path, None, self.nodeid
