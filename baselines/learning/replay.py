"""ArCHer's replay buffer: transitions between states, each distinct prompt stored once.

A transition keeps what the critics read (features under the frozen reference, so they never go stale) and a state keeps
its prompt too, because the policy answers it again. Everything is saved as a few flat tensors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..models.family import ImageInput, Prompt


@dataclass(frozen=True, eq=False)
class State:
    """A policy's observation before a reply.

    Attributes:
        prompt: the exact prompt; feature: [H] float32, what the critics read of it.
    """

    prompt: Prompt
    feature: Tensor


@dataclass(frozen=True, eq=False)
class Transition:
    """One environment step.

    Attributes:
        state: what was answered; action: [A] float32, what the critics read of the reply.
        reward: as training sees it.
        following: the next state, the final one of a truncated episode; None where the episode terminated.
    """

    state: State
    action: Tensor
    reward: float
    following: State | None


class Columns(NamedTuple):
    """Transitions as tensors: states [B, H], actions [B, A], rewards [B], following [B, H] (0 where terminated) and
    terminated [B] bool."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    following: Tensor
    terminated: Tensor


def columns(rows: Sequence[Transition]) -> Columns:
    """Stack transitions."""
    states = torch.stack([row.state.feature for row in rows])
    following = [torch.zeros_like(states[0]) if row.following is None else row.following.feature for row in rows]
    return Columns(
        states,
        torch.stack([row.action for row in rows]),
        torch.tensor([row.reward for row in rows], device=states.device),
        torch.stack(following),
        torch.tensor([row.following is None for row in rows], device=states.device),
    )


class Replay:
    """The newest `capacity` transitions.

    Attributes:
        rows: transitions, oldest first.
        states: by prompt key, those that a transition in `rows` refers to.
    """

    def __init__(self, capacity: int) -> None:
        self.rows: deque[Transition] = deque(maxlen=capacity)
        self.states: dict[bytes, State] = {}

    def add(self, rows: Iterable[Transition]) -> None:
        """Append transitions; beyond the capacity the oldest go, and with them the states that only they had."""
        self.rows.extend(rows)
        ends = (state for row in self.rows for state in (row.state, row.following))
        self.states = {state.prompt.key: state for state in ends if state is not None}

    def draw(self, count: int, generator: torch.Generator) -> list[Transition]:
        """`count` different transitions in random order, all if there are fewer."""
        return [self.rows[i] for i in torch.randperm(len(self.rows), generator=generator)[:count].tolist()]

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """All there is; nothing while the buffer is empty."""
        if not self.rows:
            return {}
        states = list(self.states.values())
        prompts = [state.prompt for state in states]
        number = {key: i for i, key in enumerate(self.states)}
        images = list({image.digest: image for prompt in prompts for image in prompt.images}.values())
        image_number = {image.digest: i for i, image in enumerate(images)}
        following = [-1 if row.following is None else number[row.following.prompt.key] for row in self.rows]
        return {
            "rows.state": torch.tensor([number[row.state.prompt.key] for row in self.rows]),
            "rows.following": torch.tensor(following),
            "rows.action": torch.stack([row.action for row in self.rows]),
            "rows.reward": torch.tensor([row.reward for row in self.rows], dtype=torch.float64),
            "states.feature": torch.stack([state.feature for state in states]),
            "prompts.ids": torch.cat([prompt.ids for prompt in prompts]),
            "prompts.positions": torch.cat([prompt.positions for prompt in prompts], dim=1),
            "prompts.slots": torch.cat([prompt.image_slots for prompt in prompts]),
            "prompts.sizes": torch.tensor([[len(p), len(p.image_slots), len(p.images)] for p in prompts]),
            "prompts.next": torch.tensor([prompt.next_position for prompt in prompts]),
            "prompts.key": _bytes(prompt.key for prompt in prompts),
            "prompts.image": torch.tensor(
                [image_number[image.digest] for prompt in prompts for image in prompt.images], dtype=torch.int64
            ),
            "images.pixels": _bytes(image.pixels.tobytes() for image in images),
            "images.shape": torch.tensor([image.pixels.shape for image in images], dtype=torch.int64).view(-1, 3),
            "images.grid": torch.tensor([image.grid for image in images], dtype=torch.int64).view(-1, 3),
            "images.tokens": torch.tensor([image.tokens for image in images], dtype=torch.int64),
            "images.digest": _bytes(image.digest for image in images),
        }

    def restore(self, saved: dict[str, Tensor]) -> None:
        """Restore `tensors`; features stay on the device that they are on."""
        self.rows.clear()
        if not saved:
            self.states = {}
            return
        on_cpu = {name: x if name in ("rows.action", "states.feature") else x.cpu() for name, x in saved.items()}
        states = [
            State(prompt, feature.clone())
            for prompt, feature in zip(_prompts(on_cpu, _images(on_cpu)), saved["states.feature"], strict=True)
        ]
        at, after, rewards = (on_cpu[f"rows.{name}"].tolist() for name in ("state", "following", "reward"))
        self.add(
            Transition(states[i], action.clone(), reward, states[j] if j >= 0 else None)
            for i, j, reward, action in zip(at, after, rewards, saved["rows.action"], strict=True)
        )


def _bytes(parts: Iterable[bytes]) -> Tensor:
    """Byte strings one after the other, [all bytes] uint8."""
    return torch.from_numpy(np.frombuffer(b"".join(parts), dtype=np.uint8).copy())


def _chunks(data: Tensor, count: int) -> list[bytes]:
    """Cut `_bytes` of equally long strings again."""
    text = data.numpy().tobytes()
    size = len(text) // max(1, count)
    return [text[i * size : (i + 1) * size] for i in range(count)]


def _images(saved: dict[str, Tensor]) -> list[ImageInput]:
    shapes = saved["images.shape"].tolist()
    pixels = saved["images.pixels"].split([h * w * c for h, w, c in shapes]) if shapes else ()
    digests = _chunks(saved["images.digest"], len(shapes))
    parts = zip(digests, pixels, shapes, saved["images.grid"].tolist(), saved["images.tokens"].tolist(), strict=True)
    return [
        ImageInput(digest, x.numpy().reshape(shape).copy(), (grid[0], grid[1], grid[2]), tokens)
        for digest, x, shape, grid, tokens in parts
    ]


def _prompts(saved: dict[str, Tensor], images: Sequence[ImageInput]) -> list[Prompt]:
    lengths, slots, counts = saved["prompts.sizes"].t().tolist()
    parts = zip(
        saved["prompts.ids"].split(lengths),
        saved["prompts.positions"].split(lengths, dim=1),
        saved["prompts.next"].tolist(),
        saved["prompts.slots"].split(slots),
        saved["prompts.image"].split(counts),
        _chunks(saved["prompts.key"], len(lengths)),
        strict=True,
    )
    return [
        Prompt(ids.clone(), positions.clone(), following, at.clone(), tuple(images[i] for i in of.tolist()), key)
        for ids, positions, following, at, of, key in parts
    ]
