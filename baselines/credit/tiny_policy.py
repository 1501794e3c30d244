"""The tiny model as a policy of NumberLine whose probabilities and gradients are exact.

Each turn's prompt is answered by one of the two legal replies, without thoughts, with the probabilities that the model
gives them. So the gradient of the log-probability of either, over all weights, is a multiple of the gradient of their
log-odds: a vector per prompt, and all inner products of policy gradients are in one matrix. The prompts are those of
one target: the policy is the same whatever the number of targets, so horizons alone differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import vlgym
from vlgym.env.prompts import PromptBuilder
from vlgym.parsers import write_reply

from ..engine.engine import pad_rows
from ..engine.plain import make_engine
from ..models.load import load_family
from .episodes import Book

ACTIONS = ("-", "+")
SIZE = (56, 112)
"""Height and width of NumberLine's pictures, whose numbers are then whole in a patch."""
BATCH, NOISE = 16, 0.3
"""Prompts in a gradient step, and the share of labels that are random, so that the model stays unsure."""


class TinyPolicy:
    """The model and its 30 prompts, of every two numbers (`places`: 6 * target + current); `seed` is that of weights and labels."""

    def __init__(self, seed: int = 0) -> None:
        self.engine = make_engine(load_family("tiny", image_tokens=16, seed=seed, device="cpu"), max_new_tokens=8)
        self.generator, self.steps = torch.Generator().manual_seed(seed), 0
        self.parameters = [p for p in self.engine.family.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.0)
        self.places: list[int] = []
        self.prompts: list[Any] = []
        env = vlgym.make("vlgym/NumberLine-v0", image_size=SIZE).unwrapped
        for target, current in ((t, c) for t in range(6) for c in range(6) if t != c):
            observation, info = env.reset(seed=0, options={"target": target, "current": current})
            self.places.append(6 * target + current)
            told = (info["vlgym"]["instructions"], info["vlgym"]["turn_text"], observation["image"])
            self.prompts.append(self.engine.family.encode(PromptBuilder().build(*told)))
        texts = [write_reply(env.parser, [action], "", ACTIONS) for action in ACTIONS]
        replies = [torch.tensor(self.engine.family.encode_reply(text)) for text in texts]
        self.ids, self.mask = pad_rows(replies, self.engine.family.pad_id)

    def score(self, rows: Sequence[int]) -> Tensor:
        """Return log-probabilities of the two replies to some prompts, [B, 2]."""
        prompts = [self.prompts[row] for row in rows for _ in ACTIONS]
        ids, mask = (x.repeat(len(rows), 1) for x in (self.ids, self.mask))
        return self.engine.score(prompts, ids, mask, train_vision=True).sum(-1).view(-1, 2)

    def train(self, steps: int) -> None:
        """Go on with a supervised run up to this many gradient steps: the oracle's replies, `NOISE` of them random."""
        right = torch.tensor([int(place // 6 > place % 6) for place in self.places])
        for self.steps in range(self.steps + 1, steps + 1):
            self.optimizer.param_groups[0]["lr"] = 1e-3 * min(1.0, self.steps / 50)
            rows = torch.randint(len(self.prompts), (BATCH,), generator=self.generator)
            random = torch.rand(len(rows), generator=self.generator) < NOISE
            labels = torch.where(random, torch.randint(2, (len(rows),), generator=self.generator), right[rows])
            loss = -self.score(rows.tolist()).gather(1, labels.unsqueeze(1)).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()

    @torch.no_grad()
    def plus(self) -> Tensor:
        """Return the probability of `+` by target and current number, [6, 6] float64; 0.5 where there is no prompt."""
        table = torch.full((36,), 0.5).double()
        table[list(self.places)] = self.score(range(len(self.prompts))).double().softmax(-1)[:, 1]
        return table.view(6, 6)

    def gradients(self) -> Tensor:
        """Return inner products [36, 36] of the prompts' gradients of the log-odds of `+`, over all weights."""
        vectors = torch.zeros(36, sum(p.numel() for p in self.parameters))
        for row, place in enumerate(self.places):
            minus, plus = self.score([row])[0]
            parts = torch.autograd.grad(plus - minus, self.parameters, materialize_grads=True)
            vectors[place] = torch.cat([part.flatten() for part in parts])
        return (vectors @ vectors.T).double()

    def states(self) -> Tensor:
        """Return the states of the prompts' last tokens, [36, H]."""
        found = self.engine.last_hidden(self.prompts)
        states = torch.zeros(36, found.shape[-1])
        states[list(self.places)] = found
        return states


def read_pictures(book: Book) -> Tensor:
    """Return the states of a book's prompts in the untrained tiny model, [keys, H]."""
    engine = make_engine(load_family("tiny", image_tokens=64, seed=0, device="cpu"), max_new_tokens=8)
    prompts = [engine.family.encode(PromptBuilder().build(*prompt)) for prompt in book.prompts]
    return torch.cat([engine.last_hidden(prompts[at : at + 32]) for at in range(0, len(prompts), 32)])
