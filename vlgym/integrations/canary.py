"""Canaries: does a picture reach the model, and the score that a trainer takes gradients of?

    from vlgym.integrations.canary import canary_batch, sight_gap

    print(sight_gap(score, canary_batch(48)))   # score(messages, replies) -> log-probabilities

A canary (`vlgym/Canary*`, of vlgym-sight) tells its answer in one picture of an episode and nowhere
else, so a policy without that picture is right with a known probability.
"""

import math
import operator
import statistics
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

CONFIDENCE = 0.99  # of a verdict's interval: a blind policy sees in at most 0.5 % of runs

# Least mean size of a gap in nats, and in mean differences of two equal scorings (dropout).
SMALLEST_GAP, LEAST_RATIO = 0.05, 3


@dataclass(frozen=True)
class Sampled:
    """Answers of a policy to one canary, with the exact interval of the share of right ones.

    It `sees` if the interval lies above chance; it is `blind` if the interval holds chance and ends
    less than halfway from chance to 1; else, or if most are unreadable, the verdict is `cannot tell`.
    """

    env_id: str
    chance: float  # probability of a right answer without the picture
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
    """Let a policy play canaries as `vlgym eval` plays them, and judge its answers."""
    check_number("episodes", episodes, 1)
    chances = {env_id: find_chance(env_id) for env_id in env_ids}
    lasts: dict[str, list[StepRecord]] = {env_id: [] for env_id in chances}
    jobs = list_jobs(plan_ids(env_ids, episodes=episodes, split=split))
    Player(jobs, policy, on_episode=lambda episode: lasts[episode[-1].env_id].append(episode[-1])).play()
    judged = []
    for env_id, turns in lasts.items():
        right, unreadable = sum(turn.success for turn in turns), sum(turn.invalid for turn in turns)
        judged.append(judge_canary(env_id, chances[env_id], right, len(turns), unreadable))
    return judged


def judge_canary(env_id: str, chance: float, right: int, episodes: int, unreadable: int = 0) -> Sampled:
    """Return the verdict on a number of right answers.

    >>> judge_canary("vlgym/CanaryDigit-v0", 0.1, 18, 20).verdict
    'sees'
    >>> judge_canary("vlgym/CanaryDigit-v0", 0.1, 2, 20).verdict
    'blind'
    """
    low, high = binomial_interval(right, episodes, CONFIDENCE)
    blind = high < (1 + chance) / 2 and 2 * unreadable <= episodes
    verdict = SEES if low > chance else BLIND if blind else CANNOT_TELL
    return Sampled(env_id, chance, right, episodes, unreadable, low, high, verdict)


def find_chance(env_id: str) -> float:
    """Return the probability of a right answer without the picture; another id is a `UserError`."""
    env: Any = make(env_id)
    try:
        if not all(hasattr(env, name) for name in ("answers", "asked", "pictures")):
            raise UserError(f"{env_id} is no canary; canaries are {', '.join(CANARIES)}.")
        return 1 / len(env.answers)
    finally:
        env.close()


@dataclass(frozen=True)
class CanaryItem:
    """The last turn of a canary episode."""

    env_id: str
    seed: int
    messages: list[Message]  # the prompt in neutral form, with the pictures that the card's history holds
    answer: str  # the right reply, in the form that the prompt asks for


def canary_batch(n: int, seed: int = 0, *, env_ids: Sequence[str] = CANARIES, split: str = "val") -> list[CanaryItem]:
    """Return the last turns of `n` canary episodes, of each id in turn, others for each seed."""
    check_number("n", n, 1)
    check_number("seed", seed, 0)
    items, oracle = [], OraclePolicy()

    # The oracle plays, so the last turn's prompt has the history of right replies.
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
        episode = episode_seed(env_id, split, number)
        items.append(CanaryItem(env_id, episode, turn.messages, answer))
    return items


# A trainer's score: prompts and replies -> each reply's log-probability in nats.
LogProb = Callable[[list[list[Message]], list[str]], Sequence[float]]


@dataclass(frozen=True)
class SightGap:
    """Effect of the pictures on the log-probability of the right answer, in nats.

    The verdict is `blind` if the gaps' mean size is below `SMALLEST_GAP`; `pictures arrive` if it is
    at least `LEAST_RATIO` times the mean difference of two equal scorings; else `cannot tell`.
    """

    mean: float  # of the gaps logp(answer | pictures) - logp(answer | grey pictures)
    low: float  # end of the mean's 95 % Student interval
    high: float
    verdict: str
    n: int

    def __str__(self) -> str:
        words = self.verdict
        if words == ARRIVES:
            effect = "likelier" if self.low > 0 else "less likely" if self.high < 0 else None
            words += f", and make right answers {effect or 'neither likelier nor less likely'}"
        interval = f"[{self.low:+.3f} to {self.high:+.3f}]"
        return f"{words} (gap {self.mean:+.3f} nats {interval}, {self.n} episodes)"


def sight_gap(log_prob: LogProb, batch: Sequence[CanaryItem]) -> SightGap:
    """Return the pictures' effect on the right answers' log-probability, by the caller's score.

    A score that loses the pictures has the gap 0. Pictures arrive in an untrained model, too;
    `vlgym canary` judges if a model reads them. Each episode is scored three times.

    Raises:
        UserError: the batch has fewer than two episodes, or a score is no number.
    """
    check_number("episodes of the batch", len(batch), 2)
    answers = [item.answer for item in batch]
    shown, again = (_score(log_prob, [item.messages for item in batch], answers) for _ in range(2))
    grey = _score(log_prob, [in_grey(item.messages) for item in batch], answers)
    gaps = list(map(operator.sub, shown, grey))
    mean = statistics.fmean(gaps)
    half = student_t(len(gaps) - 1) * statistics.stdev(gaps) / math.sqrt(len(gaps))

    # An effect must be larger than the score's own noise.
    size = statistics.fmean(map(abs, gaps))
    noise = statistics.fmean(map(abs, map(operator.sub, shown, again)))
    arrives = size >= LEAST_RATIO * noise
    verdict = BLIND if size < SMALLEST_GAP else ARRIVES if arrives else CANNOT_TELL
    return SightGap(mean, mean - half, mean + half, verdict, len(gaps))


def _score(log_prob: LogProb, prompts: list[list[Message]], answers: list[str]) -> list[float]:
    scores = [float(score) for score in log_prob(prompts, answers)]
    if len(scores) != len(answers) or not all(map(math.isfinite, scores)):
        raise UserError(f"log_prob must return {len(answers)} finite numbers, one for each reply.")
    return scores
