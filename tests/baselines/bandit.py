"""A two-armed bandit, a model small enough to learn it in a second, and learners that play it.

The model can say six words and the end of its turn. So an untrained one plays at random, its replies
differ in length, and some name no arm.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from stage import Stage, learner_of

from baselines import archer
from baselines.engine.engine import Engine
from baselines.learning.run import Update
from baselines.learning.warm_start import WarmConfig
from baselines.models.qwen import TinyQwen2VL
from baselines.models.tiny import TinyConfig, build_tiny
from baselines.runs.distributed import ALONE, World
from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.spec import EnvSpec
from vlgym.types import Outcome, Parsed

sys.path.insert(0, str(Path(__file__).parents[1]))
from toys import installed

WORDS = ("+", "-", "so", "go", "up", "left")
MINI = TinyConfig(
    hidden_size=32, layers=2, intermediate_size=64, vision_width=16, vision_heads=2, std=0.2, embedding_std=0.2
)


class ArmParser:
    name, version = "arm", 1

    def parse(self, text: str, legal: Any = None) -> Parsed:
        match = re.search(r"[+-]", text)
        return Parsed((match[0],), span=match.span()) if match else Parsed(failure="no_action")

    def end(self, text: str) -> int | None:
        match = re.search(r"[+-]", text)
        return match.end() if match else None

    def format(self, actions: Any, thoughts: str = "") -> str:
        return f"{thoughts}{actions[-1]}"

    def describe(self) -> str:
        return "Say + or -."


def right_arm(number: int) -> str:
    return "+" if number % 2 == 0 else "-"


class Bandit(VLEnv):
    """Two arms: `+` pays 1 where the number, which counts turns, is even, `-` where it is odd.

    Args:
        plain: `+` pays always.
        last: the episode terminates after that many turns.
        gift: every arm pays a fifth of the number.
        seen: the picture says which arm pays, white for `+`, and the text does not.

    Attributes:
        begun: of the class: (split, seed) of every episode so far.
    """

    prompt = PromptTemplate(version=1, instructions="{format}", turn="{state} {actions}")
    begun: ClassVar[list[tuple[str | None, int | None]]] = []

    def __init__(
        self, plain: bool = False, last: int = 1, gift: bool = False, seen: bool = False, **kwargs: Any
    ) -> None:
        self.plain, self.last, self.gift, self.seen = plain, last, gift, seen
        super().__init__(**kwargs)

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.begun.append((self.seed_split, self.reset_seed))
        self.number, self.won = int(rng.integers(6)), False

    def act(self, action: str) -> Outcome:
        self.won = action == self.oracle()
        paid = self.number / 5 if self.gift else float(self.won)
        return Outcome(paid, terminated=self.turn + 1 >= self.last)

    def image(self) -> np.ndarray:
        level = 99 if not self.seen else 255 if self.oracle() == "+" else 0
        return np.full((*self.image_size, 3), level, np.uint8)

    def task(self) -> str:
        return ""

    def state_text(self) -> str:
        return "" if self.seen else f"{self.number + self.turn}"

    def legal_actions(self) -> list[str]:
        return ["+", "-"]

    def success(self) -> bool:
        return self.won

    def oracle(self) -> str:
        return "+" if self.plain else right_arm(self.number + self.turn)


class Ladder(Bandit):
    """A bandit with levels: how many turns an episode has."""

    level_arguments: ClassVar = ({"last": 1}, {"last": 2}, {"last": 3})


def spec(name: str, **changes: Any) -> EnvSpec:
    """A card of the bandit; `kwargs` and the turn limit say how its episodes end."""
    return EnvSpec(
        **{
            "id": f"test/{name}-v0", "entry_point": "bandit:Bandit", "summary": "Two arms.",
            "family": "bandit", "max_turns": 50, "reward_range": (0.0, 1.0), "image_size": (28, 28),
            "success_rule": "The last action was right.", "reply_styles": ("bandit:ArmParser",),
            **changes,
        }
    )  # fmt: skip


PLAIN, ONE, GIFT, SEEN, ENDS, CUT, LONG, LADDER = (
    f"test/{name}-v0" for name in ("Plain", "One", "Gift", "Seen", "Ends", "Cut", "Long", "Ladder")
)
"""Episodes of one turn, the first of the plain bandit, the third of gifts and the fourth of
pictures; that terminate after two; that are cut after three; that go on beyond every rollout; of
three levels."""


@contextmanager
def bandits() -> Iterator[None]:
    specs = [
        spec("Plain", kwargs={"plain": True}), spec("One"), spec("Gift", kwargs={"gift": True}),
        spec("Seen", kwargs={"seen": True}), spec("Ends", kwargs={"last": 2}),
        spec("Cut", kwargs={"last": 99}, max_turns=3), spec("Long", kwargs={"last": 99}),
        spec("Ladder", entry_point="bandit:Ladder", kwargs={"plain": True}, levels=("one", "two", "three")),
    ]  # fmt: skip
    with installed(*specs, distribution="test-bandit"):
        Bandit.begun.clear()
        yield


def small_family() -> TinyQwen2VL:
    """A fresh model of two layers that can say `WORDS` alone; the same weights each time."""
    net, tokenizer = build_tiny(MINI)
    family = TinyQwen2VL(net, tokenizer, image_tokens=1)
    vocabulary = {family.turn_end, *(family.encode_text(word)[0] for word in WORDS)}
    family.suppressed = tuple(i for i in range(net.lm_head.weight.shape[0]) if i not in vocabulary)
    return family


def small_engine(**options: Any) -> Engine:
    return Engine(small_family(), **{"max_new_tokens": 2, "parsers": (ArmParser(),), **options})


SETTINGS: dict[str, Any] = {
    "env": f"{ENDS},{CUT},{LONG}", "num_envs": 3, "rollout_steps": 7, "minibatch": 8, "updates": 10,
    "epochs": 2, "max_new_tokens": 4, "image_tokens": 1, "warm": WarmConfig(steps=0),
    "eval_episodes": 0, "threads": 1, "max_grad_norm": 1e9,
}  # fmt: skip


def on_stage(module: Any, world: World = ALONE, **changes: Any) -> Any:
    """The learner of a module with `SETTINGS`, changed."""
    config = replace(module.Config(**SETTINGS), **changes).resolve()
    engine = small_engine(max_new_tokens=config.max_new_tokens)
    reference = module is archer or config.kl_coef > 0
    return learner_of(module)(Stage(config, engine, world, keep_reference=reference))


def perturb(learner: Any, size: float = 0.02, seed: int = 5) -> None:
    """Move the trained weights away from those that sampled or from the reference."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in learner.weights.parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * size)


def make_update(learner: Any, number: int = 1) -> tuple[Any, dict[str, float]]:
    """Let a learner make an update; return the rollout and the metrics that it logged."""
    update = Update(number, {"rollout": "", "update": ""})
    learner.train([update])
    assert update.result is not None
    return update.result


class Steps:
    """Notes of every gradient step of a learner, taken when its optimizer is about to make it.

    Attributes:
        seen: (optimizer's name, learning rate, gradients of its parameters, 0 where one has none).
    """

    def __init__(self, learner: Any) -> None:
        self.seen: list[tuple[str, float, list[torch.Tensor]]] = []
        for name, optimizer in learner.optimizers.named.items():
            optimizer.register_step_pre_hook(lambda opt, *_, name=name: self._note(name, opt))

    def _note(self, name: str, optimizer: torch.optim.Optimizer) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]
        (rate,) = {group["lr"] for group in optimizer.param_groups}
        self.seen.append((name, rate, gradients))

    def rates(self, name: str) -> list[float]:
        return [rate for seen, rate, _ in self.seen if seen == name]

    def gradients(self, name: str) -> list[list[torch.Tensor]]:
        return [gradients for seen, _, gradients in self.seen if seen == name]
