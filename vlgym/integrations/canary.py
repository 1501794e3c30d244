"""Canaries: does a picture reach the model that answers, and the score that a trainer takes gradients of?

    from vlgym.integrations.canary import canary_batch, sight_gap

    print(sight_gap(score, canary_batch(48)))   # score(messages, replies) -> log-probabilities, of your trainer

A canary (`vlgym/Canary*`, of vlgym-sight) tells its answer in one picture of an episode and nowhere else, so a policy
without that picture is right with a known probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..env.seeding import episode_seed
from ..errors import UserError, check_number
from ..evaluation.episodes import Player
from ..evaluation.plan import list_jobs, plan_ids
from ..intervals import binomial_interval, student_t
from ..play.controls import in_grey
from ..play.policies import OraclePolicy, Policy
from ..play.rollout import Runner
from ..registry.making import make
from ..types import Message, StepRecord

CANARIES = ("vlgym/CanaryColour-v0", "vlgym/CanaryDigit-v0", "vlgym/CanaryMemory-v0")
SEES, ARRIVES, CANNOT_TELL, BLIND = "sees", "pictures arrive", "cannot tell", "blind"

CONFIDENCE = 0.99
"""Level of the interval that a verdict rests on: a blind policy passes for a seeing one in at most 0.5 % of runs."""

SMALLEST_GAP, LEAST_RATIO = 0.05, 3
"""Mean size of a gap in nats below which the pictures count as without effect; and how many times the mean difference
of two equal scorings (dropout) it must be to count as their effect."""


@dataclass(frozen=True)
class Sampled:
    """Answers of a policy to one canary.

    Attributes:
        chance: probability of a right answer without its picture.
        low: lower end of the exact interval of the share of right answers, at `CONFIDENCE`.
        verdict: `sees`: the interval lies above chance; `blind`: it holds chance, and ends less than halfway from
            chance to 1; else, and where most replies were unreadable, `cannot tell`.
    """

    env_id: str
    chance: float
    right: int
    episodes: int
    unreadable: int
    low: float
    high: float
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample_canaries(
    policy: Policy, episodes: int = 20, env_ids: Sequence[str] = CANARIES, split: str = "test"
) -> list[Sampled]:
    """Let a policy play canaries as `vlgym eval` plays them, and judge its answers.

    Raises:
        UserError: an id is no canary or not installed.
    """
    check_number("episodes", episodes, 1)
    played: dict[str, list[StepRecord]] = {env_id: [] for env_id in env_ids}
    chances = {env_id: find_chance(env_id) for env_id in played}
    parts = plan_ids(env_ids, episodes=episodes, split=split)
    Player(list_jobs(parts), policy, on_episode=lambda episode: played[episode[-1].env_id].append(episode[-1])).play()
    return [
        judge_canary(
            env_id,
            chances[env_id],
            sum(last.success for last in lasts),
            len(lasts),
            sum(last.invalid for last in lasts),
        )
        for env_id, lasts in played.items()
    ]


def judge_canary(env_id: str, chance: float, right: int, episodes: int, unreadable: int = 0) -> Sampled:
    """Return the verdict on a number of right answers.

    >>> judge_canary("vlgym/CanaryDigit-v0", 0.1, 18, 20).verdict
    'sees'
    >>> judge_canary("vlgym/CanaryDigit-v0", 0.1, 2, 20).verdict
    'blind'
    """
    low, high = binomial_interval(right, episodes, CONFIDENCE)
    verdict = SEES if low > chance else BLIND if high < (1 + chance) / 2 and 2 * unreadable <= episodes else CANNOT_TELL
    return Sampled(env_id, chance, right, episodes, unreadable, low, high, verdict)


def find_chance(env_id: str) -> float:
    """Return the probability of a right answer without the picture.

    Raises:
        UserError: the id is no canary.
    """
    env: Any = make(env_id)
    try:
        if not (hasattr(env, "answers") and hasattr(env, "asked") and hasattr(env, "pictures")):
            raise UserError(f"{env_id} is no canary; canaries are {', '.join(CANARIES)}.")
        return 1 / len(env.answers)
    finally:
        env.close()


@dataclass(frozen=True)
class CanaryItem:
    """The last turn of a canary episode.

    Attributes:
        messages: the prompt in neutral form (`vlgym.types.Message`), with every picture of the episode that the card's
            history holds; `vlgym.endpoint.messages.encode_messages` makes chat completions of it.
        answer: the right reply, in the form that the prompt asks for.
    """

    env_id: str
    seed: int
    messages: list[Message]
    answer: str


def canary_batch(n: int, seed: int = 0, *, env_ids: Sequence[str] = CANARIES, split: str = "val") -> list[CanaryItem]:
    """Return the last turns of `n` canary episodes, of each id in turn; batches of other seeds hold other episodes."""
    check_number("n", n, 1)
    check_number("seed", seed, 0)
    items, oracle = [], OraclePolicy()
    for index in range(n):
        env_id, number = env_ids[index % len(env_ids)], seed * n + index
        env: Any = make(env_id)
        runner = Runner([env], split=split, first_episode=number, episodes=1)
        try:
            while not runner.done:
                turn = runner.turns()[0]
                answer = env.parser.format([env.oracle()])
                runner.step(oracle)
        finally:
            runner.close()
        items.append(CanaryItem(env_id, episode_seed(env_id, split, number), turn.messages, answer))
    return items


LogProb = Callable[[list[list[Message]], list[str]], Sequence[float]]
"""Your trainer's score: prompts and replies -> the log-probability of each reply, in nats, summed over its tokens."""


@dataclass(frozen=True)
class SightGap:
    """Effect of the pictures on the log-probability of the right answer.

    Attributes:
        mean: mean of the gaps logp(answer | pictures) - logp(answer | grey pictures), in nats.
        low: lower end of the mean's 95 % Student interval.
        verdict: `blind`: the gaps' mean size is below `SMALLEST_GAP`; `pictures arrive`: it is at least `LEAST_RATIO`
            times the mean difference of two equal scorings; else `cannot tell`.
    """

    mean: float
    low: float
    high: float
    verdict: str
    n: int

    def __str__(self) -> str:
        effect = "likelier" if self.low > 0 else "less likely" if self.high < 0 else "neither likelier nor less likely"
        words = f"{self.verdict}, and make right answers {effect}" if self.verdict == ARRIVES else self.verdict
        return f"{words} (gap {self.mean:+.3f} nats [{self.low:+.3f} to {self.high:+.3f}], {self.n} episodes)"


def sight_gap(log_prob: LogProb, batch: Sequence[CanaryItem]) -> SightGap:
    """Return how much the pictures change the right answers' log-probability, by the caller's own score.

    A score that loses the pictures has the gap 0. Pictures arrive in an untrained model, too; `vlgym canary` tells
    whether a model reads them. It scores each episode three times.

    Raises:
        UserError: the batch has fewer than two episodes, or a score is no number.
    """
    check_number("episodes of the batch", len(batch), 2)
    answers = [item.answer for item in batch]
    shown, again = (_score(log_prob, [item.messages for item in batch], answers) for _ in range(2))
    grey = _score(log_prob, [in_grey(item.messages) for item in batch], answers)
    gaps = [with_picture - without for with_picture, without in zip(shown, grey, strict=True)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    half = student_t(len(gaps) - 1) * math.sqrt(variance / len(gaps))
    low, high = mean - half, mean + half
    size = sum(map(abs, gaps)) / len(gaps)
    noise = sum(abs(one - other) for one, other in zip(shown, again, strict=True)) / len(gaps)
    verdict = BLIND if size < SMALLEST_GAP else ARRIVES if size >= LEAST_RATIO * noise else CANNOT_TELL
    return SightGap(mean, low, high, verdict, len(gaps))


def _score(log_prob: LogProb, prompts: list[list[Message]], answers: list[str]) -> list[float]:
    scores = [float(score) for score in log_prob(prompts, answers)]
    if len(scores) != len(answers) or not all(map(math.isfinite, scores)):
        raise UserError(f"log_prob must return {len(answers)} finite numbers, one for each reply.")
    return scores
