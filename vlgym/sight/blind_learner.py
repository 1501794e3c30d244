"""Blind players that learn on the train split: a table of returns and a list of moves.

Both learn epsilon-greedily from the mean return that followed each action. The table looks its
action up by the text, the legal actions and the last feedback; where it does not know the text, by
the other two. The list has one action for each turn. Neither sees a picture, and their play on
other splits does not depend on rewards.
"""

import random
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from ..env.seeding import episode_seed
from ..env.spec import EnvSpec
from .blind import BlindPlayer

LEARNING_EPISODES, LEARNING_TURNS = 1000, 10_000  # budget of each learner, whichever ends first
SLOW_EPISODES = 30  # budget where the card has `figure_episodes`: an episode is slow
LEAST_EPSILON = 0.1  # share of random actions, to which it falls from 1 until half of the budget
KNOWN = 3  # visits from which a row of the table is looked at
LEARNERS = TABLE, LIST = "learnt table", "learnt list"
Row = dict[str, list[float]]  # action -> sum of the returns that followed it, and their number


class Memory:
    """The result of learning: key of a situation -> its row.

    `actions` were legal in train: they are the candidates where no list of them is shown.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[Hashable, Row] = {}
        self.actions: dict[str, None] = {}

    def learn(self, keys: Sequence[Hashable], action: str, earned: float) -> None:
        """Add the return that followed an action."""
        for key in keys:
            entry = self.rows.setdefault(key, {}).setdefault(action, [0.0, 0.0])
            entry[0] += earned
            entry[1] += 1

    def find_best(self, keys: Sequence[Hashable], candidates: Sequence[str], rng: random.Random) -> str:
        """Return the candidate with the highest mean return in the first row that is known.

        Means are smoothed with one pseudo-return equal to the row's mean. Ties are broken at random.
        """
        for key in keys:
            row = self.rows.get(key, {})
            visits = sum(number for _, number in row.values())
            if visits < KNOWN:
                continue

            # Untried candidates have the row's mean.
            usual = sum(earned for earned, _ in row.values()) / visits
            means = {}
            for action in candidates:
                earned, number = row.get(action, (0.0, 0.0))
                means[action] = (earned + usual) / (number + 1)
            most = max(means.values())
            return rng.choice([action for action, mean in means.items() if mean == most])
        return rng.choice(candidates)


class Learner(BlindPlayer):
    """Plays one episode by a memory."""

    def __init__(self, rng: random.Random, memory: Memory, epsilon: float = 0.0) -> None:
        super().__init__(rng)
        self.memory, self.epsilon = memory, epsilon
        self.visited: list[tuple[Sequence[Hashable], str]] = []
        self._feedback = ""

    def hear(self, feedback: str) -> None:
        self._feedback = feedback

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return a random action or the best that is known; an empty text where none is."""
        keys = self.list_keys(text, legal)
        candidates = legal or tuple(self.memory.actions)
        action = ""
        if candidates and self.rng.random() < self.epsilon:
            action = self.rng.choice(candidates)
        elif candidates:
            action = self.memory.find_best(keys, candidates, self.rng)
        self.visited.append((keys, action))
        return action

    def list_keys(self, text: str, legal: tuple[str, ...]) -> Sequence[Hashable]:
        """Return the keys of this turn's situation, the most exact first."""
        if self.memory.name == LIST:
            return (len(self.visited),)
        return (text, legal, self._feedback), (legal, self._feedback), ()


def learn(spec: EnvSpec, make: Callable[[], Any], name: str) -> Callable[[random.Random], BlindPlayer]:
    """Let a learner, one of `LEARNERS`, learn on the train split; return the maker of its players."""
    memory, episodes = Memory(name), count_training(spec)
    rng, env = random.Random(f"{name} {spec.id}"), make()
    try:
        for number in range(episodes):
            player = Learner(rng, memory, max(LEAST_EPSILON, 1 - 2 * number / episodes))
            _play(env, episode_seed(spec.id, "train", number), player)
    finally:
        env.close()
    return partial(Learner, memory=memory)


def count_training(spec: EnvSpec) -> int:
    """Return the number of train episodes that each learner plays."""
    if spec.figure_episodes:
        return SLOW_EPISODES
    return max(1, min(LEARNING_EPISODES, LEARNING_TURNS // spec.max_turns))


def _play(env: Any, seed: int, player: Learner) -> None:
    observation, info = env.reset(seed=seed)
    rewards: list[float] = []
    over = False
    while not over:
        details = info["vlgym"]
        if not details["legal_actions"]:
            player.memory.actions.update(dict.fromkeys(env.legal_actions()))
        player.hear(details["feedback"])
        action = player.choose(str(observation["text"]), tuple(details["legal_actions"]))
        reply = env.parser.format([action])
        observation, reward, terminated, truncated, info = env.step(reply)
        rewards.append(float(reward))
        over = bool(terminated or truncated)

    # Each action is credited with the return that followed it.
    earned = 0.0
    for (keys, action), reward in zip(reversed(player.visited), reversed(rewards), strict=True):
        earned += reward
        player.memory.learn(keys, action, earned)
