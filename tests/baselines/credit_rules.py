"""Exact values of a fixed policy by backward induction, in games whose rules are short; a chain that is enumerated."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from baselines.credit.episodes import EpisodeBatch

Outcomes = Sequence[tuple[float, float, Hashable | None]]
"""Probability, reward and next state of each outcome of an action; None is the end."""
Rules = Callable[[Any], Mapping[str, Outcomes]]
"""Takes a state; returns the outcomes of each legal action."""


class Exact:
    """Values of a policy by dynamic programming: Q(s, a) = E[r + gamma V(s')], V(s) = sum_a pi(a|s) Q(s, a).

    Args:
        rules: of the game; states hold the turns that are left, so that no state follows itself.
        policy: takes a state; returns the probability of each action.
        gamma: discount.
    """

    def __init__(self, rules: Rules, policy: Callable[[Any], Mapping[str, float]], gamma: float) -> None:
        self.rules, self.policy, self.gamma = rules, policy, gamma
        self.known: dict[Hashable, tuple[float, dict[str, float]]] = {}

    def solve(self, state: Hashable) -> tuple[float, dict[str, float]]:
        """Return V of a state, and Q of its actions."""
        if state not in self.known:
            q = {
                action: sum(
                    share * (reward + (0.0 if after is None else self.gamma * self.solve(after)[0]))
                    for share, reward, after in outcomes
                )
                for action, outcomes in self.rules(state).items()
            }
            self.known[state] = sum(share * q[action] for action, share in self.policy(state).items()), q
        return self.known[state]


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def tic_tac_toe(board: str) -> dict[str, Outcomes]:
    """Rules of TicTacToe for the player who moves now, `x`, against a random player `o`.
    A board has nine signs, `x`, `o` or `.`; actions are the numbers of the squares."""
    outcomes: dict[str, Outcomes] = {}
    for square in (at for at in range(9) if board[at] == "."):
        mine = board[:square] + "x" + board[square + 1 :]
        free = [at for at in range(9) if mine[at] == "."]
        if has_line(mine, "x") or not free:
            outcomes[str(square)] = [(1.0, float(has_line(mine, "x")), None)]
            continue
        theirs = [mine[:at] + "o" + mine[at + 1 :] for at in free]
        outcomes[str(square)] = [
            (1 / len(free), -float(has_line(each, "o")), None if has_line(each, "o") or "." not in each else each)
            for each in theirs
        ]
    return outcomes


def has_line(board: str, sign: str) -> bool:
    """True if a sign has three squares in a line."""
    return any(all(board[at] == sign for at in line) for line in LINES)


def enumerate_chain(gamma: float, size: int = 4) -> tuple[EpisodeBatch, Tensor, Tensor]:
    """Return all 3^4 groups of episodes of a chain of two states, their probabilities and the true advantages.
    In s0 `a` pays 0 and leads to s1, `b` pays 0.2 and ends; in s1 `a` pays 1, `b` 0, and both end. Both actions have
    probability 0.5."""
    kinds = [((1,), (0.2,), 0.5), ((0, 0), (0.0, 1.0), 0.25), ((0, 1), (0.0, 0.0), 0.25)]
    groups = list(itertools.product(kinds, repeat=size))
    shape = (len(groups), size, 2)
    rewards, mask, actions = torch.zeros(shape).double(), torch.zeros(shape).bool(), torch.zeros(shape).long()
    for g, group in enumerate(groups):
        for k, (taken, paid, _) in enumerate(group):
            actions[g, k, : len(taken)], mask[g, k, : len(taken)] = torch.tensor(taken), True
            rewards[g, k, : len(paid)] = torch.tensor(paid).double()
    share = torch.tensor([np.prod([kind[2] for kind in group]) for group in groups])
    gain = torch.tensor([0.5 * gamma - 0.2, 1.0]).double() / 2
    values = torch.tensor([0.2 + gain[0], 0.5]).double().expand(shape)
    keys = torch.arange(2).expand(shape).clone()
    return EpisodeBatch(rewards, mask, keys, actions, gamma, values), share, torch.where(actions == 0, gain, -gain)
