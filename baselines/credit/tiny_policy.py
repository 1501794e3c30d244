"""The tiny model as a policy of NumberLine whose probabilities and gradients are exact.

Each turn's prompt is answered by one of the two legal replies, without thoughts, with the probabilities that the model
gives them. So the gradient of the log-probability of either, over all weights, is a multiple of the gradient of their
log-odds: a vector per prompt, and all inner products of policy gradients are in one matrix. The prompts are those of
one target: the policy is the same whatever the number of targets, so horizons alone differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

import vlgym
from vlgym.env.prompts import PromptBuilder
from vlgym.parsers import write_reply

from ..engine.engine import pad_rows
from ..engine.plain import make_engine
from ..models.load import load_family

BATCH, NOISE = 16, 0.3
"""Prompts in a gradient step, and the share of labels that are random, so that the model stays unsure."""


class TinyPolicy:
    """The model and its 30 prompts, of every two numbers (`keys`: 6 * target + current number)."""

    def __init__(self, seed: int = 0) -> None:
        self.engine = make_engine(load_family("tiny", image_tokens=16, seed=seed, device="cpu"), max_new_tokens=8)
        self.generator, self.steps = torch.Generator().manual_seed(seed), 0
        self.parameters = [p for p in self.engine.family.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.0)
        self.keys = [key for key in range(36) if key // 6 != key % 6]
        self.right = torch.tensor([int(key // 6 > key % 6) for key in self.keys])
        env = vlgym.make("vlgym/NumberLine-v0", image_size=(56, 112)).unwrapped
        encode, legal = self.engine.family.encode_reply, env.legal_actions()
        self.replies = [torch.tensor(encode(write_reply(env.parser, [action], "", legal))) for action in legal]
        self.prompts, self.thoughts = [], []
        for key in self.keys:
            observation, info = env.reset(seed=0, options={"target": key // 6, "current": key % 6})
            told = info["vlgym"]["instructions"], info["vlgym"]["turn_text"], observation["image"]
            self.prompts.append(self.engine.family.encode(PromptBuilder().build(*told)))
            self.thoughts.append(torch.tensor(encode(env.think(""))))

    def score(self, rows: Sequence[int], replies: Sequence[Sequence[Tensor]]) -> Tensor:
        """Return log-probabilities [B, R] of R replies to each of B prompts."""
        prompts = [self.prompts[row] for row, own in zip(rows, replies, strict=True) for _ in own]
        ids, mask = pad_rows([reply for own in replies for reply in own], self.engine.family.pad_id)
        return self.engine.score(prompts, ids, mask, train_vision=True).sum(-1).view(len(rows), -1)

    def train(self, steps: int) -> None:
        """Go on with a supervised run up to this many gradient steps: the oracle's moves, `NOISE` of them random, and
        its thoughts as a reply of their own, without which the digits are read late."""
        for self.steps in range(self.steps + 1, steps + 1):
            self.optimizer.param_groups[0]["lr"] = 1e-3 * min(1.0, self.steps / 30)
            rows = torch.randperm(len(self.keys), generator=self.generator)[:BATCH]
            random = torch.rand(BATCH, generator=self.generator) < NOISE
            moves = torch.where(random, torch.randint(2, (BATCH,), generator=self.generator), self.right[rows])
            both = [(self.replies[move], self.thoughts[row]) for row, move in zip(rows, moves, strict=True)]
            loss = -self.score(rows.tolist(), both).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()

    def plus(self) -> Tensor:
        """Return the probability of `+` by target and current number, [6, 6] float64; 0.5 where there is no prompt."""
        with torch.no_grad():
            scores = self.score(range(len(self.keys)), [self.replies] * len(self.keys))
        return torch.full((36,), 0.5).double().index_put((torch.tensor(self.keys),), scores.double().softmax(-1)[:, 1]).view(6, 6)

    def gradients(self) -> Tensor:
        """Return inner products [36, 36] of the prompts' gradients of the log-odds of `+`, over all weights."""
        vectors = torch.zeros(36, sum(p.numel() for p in self.parameters))
        for row, key in enumerate(self.keys):
            minus, plus = self.score([row], [self.replies])[0]
            parts = torch.autograd.grad(plus - minus, self.parameters, materialize_grads=True)
            vectors[key] = torch.cat([part.flatten() for part in parts])
        return (vectors @ vectors.T).double()

    def states(self) -> Tensor:
        """Return the states of the prompts' last tokens, [36, H]."""
        found = self.engine.last_hidden(self.prompts)
        return torch.zeros(36, found.shape[-1]).index_put((torch.tensor(self.keys),), found)
