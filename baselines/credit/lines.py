"""NumberLine in tensors: its episodes, any policy's exact values, and the tiny model as a policy.

The horizon grows with the number of targets, and nothing else changes. A policy is a table [6, 6]
of the probability of `+` by target and current number; a key is 6 * target + current number.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import vlgym
from vlgym.env.prompts import PromptBuilder
from vlgym.env.seeding import episode_seed
from vlgym.parsers import write_reply
from vlgym.registry.making import unwrap

from ..engine.engine import make_engine, pad_rows
from ..models.load import load_family
from .episodes import EpisodeBatch, Truth

NUMBERS, TURNS = 6, 10  # numbers on the line; turns for each target
BATCH, NOISE = 16, 0.3  # of the tiny model: prompts of a gradient step, share of random labels
Starts = tuple[np.ndarray, np.ndarray]  # current numbers [S] and targets [S, n] of S starts


class Played(NamedTuple):
    """Episodes, their exact advantages, and the gain [G, K, T] of `+` over `-` in each state."""

    episodes: EpisodeBatch
    truth: Truth
    gain: Tensor


def draw_starts(targets: int, first: int, count: int) -> Starts:
    """Return the starts of `count` train episodes of NumberLine, from number `first` on."""
    env: Any = unwrap(vlgym.make("vlgym/NumberLine-v0", targets=targets, modality="none"))
    numbers = np.zeros((count, 1 + targets), int)
    for row in range(count):
        env.reset(seed=episode_seed("vlgym/NumberLine-v0", "train", first + row))
        numbers[row] = env.current, env.target, *env.later
    return numbers[:, 0], numbers[:, 1:]


def noisy(error: float) -> np.ndarray:
    """Return the oracle's table with a uniformly random move in a share `error` of the turns."""
    target, current = np.indices((NUMBERS, NUMBERS))
    return error / 2 + (1 - error) * (target > current)


def move(target: np.ndarray, current: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the next number, the reward, and whether the target was reached."""
    after = np.clip(current + 2 * action - 1, 0, NUMBERS - 1)
    reached, worse = after == target, np.abs(target - after) >= np.abs(target - current)
    return after, np.where(reached, 1.0, -1.0 * worse), reached


def solve(starts: Starts, plus: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return V [turns left, target's number, S, current] and Q [..., action], backwards in time."""
    count, n = starts[1].shape
    target, current = starts[1].T[:, :, None], np.arange(NUMBERS).reshape(1, 1, -1)
    share = plus[target, current]
    v = np.zeros((TURNS * n + 1, n + 1, count, NUMBERS))
    q = np.zeros((TURNS * n + 1, n, count, NUMBERS, 2))
    for left in range(1, TURNS * n + 1):
        for action in range(2):
            after, reward, reached = move(target, current, np.array(action))
            at, later = np.broadcast_to(after, reached.shape), v[left - 1]
            same, following = (np.take_along_axis(x, at, -1) for x in (later[:n], later[1:]))
            q[left, ..., action] = reward + gamma * np.where(reached, following, same)
        v[left, :n] = (1 - share) * q[left, ..., 0] + share * q[left, ..., 1]
    return v, q


def play_lines(starts: Starts, plus: np.ndarray, *, size: int, seed: int, gamma: float = 1.0) -> Played:
    """Play `size` episodes from each start, with their exact values and advantages."""
    (v, q), (count, n) = solve(starts, plus, gamma), starts[1].shape
    rng, row, columns = np.random.default_rng(seed), np.indices((count, size))[0], []

    # All episodes take their turn together, until the last one has ended.
    current, number, alive = starts[0][row], np.zeros_like(row), np.ones_like(row, bool)
    for left in range(TURNS * n, 0, -1):
        target = starts[1][row, np.minimum(number, n - 1)]
        action = (rng.random(row.shape) < plus[target, current]).astype(int)
        after, reward, reached = move(target, current, action)
        at = (left, np.minimum(number, n - 1), row, current)
        columns.append((reward * alive, alive, target * NUMBERS + current, action, v[at], q[at]))
        current, number = np.where(alive, after, current), number + (reached & alive)
        alive = alive & (number < n)
        if not alive.any():
            break

    parts = (torch.from_numpy(np.stack(column, axis=2)) for column in zip(*columns, strict=True))
    rewards, mask, keys, actions, values, qs = parts
    advantages = qs.gather(-1, actions.unsqueeze(-1)).squeeze(-1) - values
    truth = Truth(advantages.expand(2, *mask.shape), torch.zeros(2, *mask.shape))
    return Played(EpisodeBatch(rewards, mask, keys, actions, gamma, values), truth, qs[..., 1] - qs[..., 0])


def sum_gradient(advantages: Tensor, episodes: EpisodeBatch, plus: np.ndarray) -> Tensor:
    """Return the policy gradient, sum_t A_t grad log pi(a_t|s_t), per log-odds of each key, [36]."""
    keys, mask, zeros = episodes.keys, episodes.mask, torch.zeros(NUMBERS**2).double()
    terms = advantages * (episodes.actions - torch.from_numpy(plus).flatten()[keys])
    return zeros.index_add(0, keys[mask], terms[mask].double())


def true_gradient(played: Played, plus: np.ndarray) -> Tensor:
    """Return the policy gradient with the true advantages of both actions, [36]."""
    share = torch.from_numpy(plus).flatten()[played.episodes.keys]
    mean = share * (1 - share) * played.gain  # sum_a pi(a) A(a) times the score of a
    return sum_gradient(mean / (played.episodes.actions - share), played.episodes, plus)


class TinyPolicy:
    """The tiny model and its prompts of every two numbers, `keys`. One of two legal replies answers,
    so a log-probability's gradient is a multiple of that of their log-odds: a vector per prompt."""

    def __init__(self, seed: int = 0) -> None:
        family = load_family("tiny", image_tokens=16, seed=seed, device="cpu")
        self.engine = make_engine(family, max_new_tokens=8)
        self.generator, self.steps = torch.Generator().manual_seed(seed), 0
        self.parameters = [p for p in family.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, betas=(0.9, 0.95), weight_decay=0.0)

        # Two replies for each prompt; no number is its own target.
        self.keys = [key for key in range(36) if key // 6 != key % 6]
        self.right = torch.tensor([int(key // 6 > key % 6) for key in self.keys])
        env: Any = vlgym.make("vlgym/NumberLine-v0", image_size=(56, 112)).unwrapped
        encode, legal = family.encode_reply, env.legal_actions()
        replies = [write_reply(env.parser, [action], "", legal) for action in legal]
        self.replies = [torch.tensor(encode(reply)) for reply in replies]
        self.prompts, self.thoughts = [], []
        for key in self.keys:
            observation, info = env.reset(seed=0, options={"target": key // 6, "current": key % 6})
            parts = info["vlgym"]["instructions"], info["vlgym"]["turn_text"], observation["image"]
            self.prompts.append(family.encode(PromptBuilder().build(*parts)))
            self.thoughts.append(torch.tensor(encode(env.think(""))))

    def score(self, rows: Sequence[int], replies: Sequence[Sequence[Tensor]]) -> Tensor:
        """Return log-probabilities [B, R] of R replies to each of B prompts."""
        prompts = [self.prompts[row] for row, own in zip(rows, replies, strict=True) for _ in own]
        ids, mask = pad_rows([reply for own in replies for reply in own], self.engine.family.pad_id)
        return self.engine.score(prompts, ids, mask, train_vision=True).sum(-1).view(len(rows), -1)

    def train(self, steps: int) -> None:
        """Go on with supervised steps up to this number, on the oracle's moves and its thoughts."""
        for step in range(self.steps + 1, steps + 1):
            self.optimizer.param_groups[0]["lr"] = 1e-3 * min(1.0, step / 30)
            rows = torch.randperm(len(self.keys), generator=self.generator)[:BATCH]
            random = torch.rand(BATCH, generator=self.generator) < NOISE
            drawn = torch.randint(2, (BATCH,), generator=self.generator)
            moves = torch.where(random, drawn, self.right[rows])

            # A prompt has two replies: the move's, and the oracle's thought.
            pairs = zip(rows, moves, strict=True)
            both = [(self.replies[move], self.thoughts[row]) for row, move in pairs]
            loss = -self.score(rows.tolist(), both).mean()
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
        self.steps = steps

    def plus(self) -> Tensor:
        """Return the probability of `+` by target and current number, [6, 6] float64."""
        with torch.no_grad():
            scores = self.score(range(len(self.keys)), [self.replies] * len(self.keys))
        table = torch.full((NUMBERS**2,), 0.5).double()
        table[self.keys] = scores.double().softmax(-1)[:, 1]
        return table.view(NUMBERS, NUMBERS)

    def gradients(self) -> Tensor:
        """Return inner products [36, 36] of the prompts' gradients of the log-odds of `+`."""
        vectors = torch.zeros(36, sum(p.numel() for p in self.parameters))
        for row, key in enumerate(self.keys):
            minus, plus = self.score([row], [self.replies])[0]
            parts = torch.autograd.grad(plus - minus, self.parameters, materialize_grads=True)
            vectors[key] = torch.cat([part.flatten() for part in parts])
        return (vectors @ vectors.T).double()

    def states(self) -> Tensor:
        """Return the states of the prompts' last tokens, [36, H]."""
        states = self.engine.last_hidden(self.prompts)
        zeros = states.new_zeros(36, states.shape[1])
        return zeros.index_copy(0, torch.tensor(self.keys), states)
