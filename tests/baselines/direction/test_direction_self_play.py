"""A whole run of self-play improves at a game of two arms: see test_direction.py."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from bandit import SETTINGS, spec
from toys import installed

from baselines import self_play
from baselines.learning.game_collector import PoolOptions
from vlgym.env.prompts import PromptTemplate
from vlgym.games.multi import MultiVLEnv, Round


class Arms(MultiVLEnv):
    """Two pull an arm in turn, twice each. `+` pays 1 to who pulls it, after the other's next pull.

    Args:
        gift: an arm pays the other instead.
    """

    prompt = PromptTemplate(version=1, instructions="{format}", turn="{state} {actions}")
    symmetric: ClassVar = True

    def __init__(self, gift: bool = False, **kwargs: Any) -> None:
        self.gift = gift
        super().__init__(**kwargs)

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.pulls: list[str] = []
        self.first = 0

    def movers(self) -> tuple[int, ...]:
        return ((len(self.pulls) + self.first) % 2,) if len(self.pulls) < 4 else ()

    def moves(self, seat: int) -> list[str]:
        return ["+", "-"]

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        ((seat, arm),) = moves.items()
        before = self.pulls[-1:] == ["+"]
        self.pulls.append(arm)
        rewards = [0.0, 0.0]
        rewards[seat if self.gift else 1 - seat] += before
        if len(self.pulls) == 4:
            rewards[1 - seat if self.gift else seat] += arm == "+"
        return Round((rewards[0], rewards[1]), len(self.pulls) == 4)

    def draw(self, seat: int) -> np.ndarray:
        return np.full((*self.image_size, 3), 99, np.uint8)

    def goal(self, seat: int) -> str:
        return ""

    def won(self, seat: int) -> bool:
        return all(arm == "+" for arm in self.pulls[seat ^ self.first :: 2])

    def advise(self, seat: int) -> str:
        return "+"

    def mirror(self) -> None:
        self.first = 1


ARMS = spec(
    "Arms", entry_point=f"{__name__}:Arms", max_turns=2, skills=("several agents",), reward_range=(0.0, 2.0)
)  # fmt: skip


@pytest.mark.parametrize(
    ("gift", "shared", "least", "most"),
    [pytest.param(0, 0, 0.9, 1, marks=pytest.mark.exhaustive), (1, 0, 0, 0.75), (1, 1, 0.9, 1)],
)
def test_who_is_paid_for_an_arm_learns_to_pull_it_and_for_a_gift_only_where_the_reward_is_shared(
    tmp_path, small_runs, gift, shared, least, most
):
    options = {
        **SETTINGS, "env": ARMS.id, "num_envs": 16, "rollout_steps": 4, "minibatch": 32,
        "updates": 12, "max_new_tokens": 1, "lr": 1e-2, "max_grad_norm": 1.0, "eval_episodes": 40,
        "value_warmup": 1, "eval_controls": False, "gamma": 0.5,
        "env_kwargs": (f"gift={str(bool(gift)).lower()}",),
        "pool": PoolOptions(share_reward=bool(shared), rating_games=0, past=0.2, fixed=0.2),
    }  # fmt: skip
    with installed(ARMS, distribution="test-arms"):
        self_play.train(self_play.Config(**options, out=tmp_path / "run"))
    first, last = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert first["success"] < 0.6
    assert least <= last["success"] <= most
