"""Shared fixtures: environments without wrappers, and a generator that plays back chosen draws."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from vlgym.env import VLEnv
from vlgym.registry.making import make


@pytest.fixture
def make_env() -> Iterator[Callable[..., VLEnv]]:
    """Build environments by title; with `start` an episode begins. All are closed afterwards."""
    built: list[VLEnv] = []

    def build(title: str, start: dict[str, Any] | None = None, **kwargs: Any) -> VLEnv:
        built.append(make(f"vlgym/{title}{'' if '-v' in title else '-v0'}", **kwargs))
        if start is not None:
            built[-1].reset(seed=0, options=start)
        return built[-1]

    yield build
    for env in built:
        env.close()


@pytest.fixture
def play() -> Callable[..., tuple[list[float], bool, bool, dict[str, Any]]]:
    """Act until the actions or the episode end: rewards, terminated, truncated, last info."""

    def run(env: VLEnv, actions: list[str]) -> tuple[list[float], bool, bool, dict[str, Any]]:
        rewards: list[float] = []
        for action in actions:
            _, reward, terminated, truncated, info = env.step(env.parser.format([action]))
            rewards.append(reward)
            if terminated or truncated:
                break
        return rewards, terminated, truncated, info

    return run


class Script:
    """Stands in for a generator: `integers` and `random` return the listed values in order."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def integers(self, *_: Any, **__: Any) -> Any:
        return self.values.pop(0)

    def random(self) -> float:
        return self.values.pop(0)


@pytest.fixture
def script() -> type[Script]:
    """The class `Script`."""
    return Script
