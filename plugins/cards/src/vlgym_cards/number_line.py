"""NumberLine: read two numbers in a picture and walk from one to the other."""

import json
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vlgym.env import VLEnv
from vlgym.env.prompts import PromptTemplate
from vlgym.env.reset_options import whole_number
from vlgym.errors import UserError, check_number
from vlgym.types import Outcome

from .art import BLACK, WHITE, Canvas, centre_text, font
from .rl4vlm import NumberLineParser, apply_compat

NUMBER_LINE_PARSER = "vlgym_cards.rl4vlm:NumberLineParser"

SMALLEST_LABEL = 6  # font size in pixels; smaller words are left out: the upper number is the target


class NumberLine(VLEnv):
    """NumberLine: make the current number equal to the target number.

    NumberLine-v1 shows two targets, one after the other (`targets=2`). NumberLine-v0 is the
    published form, with one: each of its starts needs one kind of move alone, so one of the two
    constant policies wins at least half of the games (always `+`: 0.528; with two targets 0.167).

    Goal: reach the target in as few steps as possible, without a wrong one. Both numbers are
        between 0 and `max_position` (5). Start and target are drawn uniformly; if they fall
        together the target moves on to (target + 1) mod `max_position`. That is the published
        distribution (30 different starts, mean distance 2.278), so results compare.
    Observation: a white picture, 300 x 300 pixels by default, with the words Target and Current,
        each with its number at a fixed place (at 56 x 112 pixels whole within one patch of 28). The
        numbers are nowhere in the text.
    Actions: `-` (subtract one, not below 0) and `+` (add one, not above `max_position`); both are
        always legal.
    Reward: +1 if the move reaches a target, else -1 if it does not bring the current number nearer
        (also when it is stopped at an end), else 0. The best return is the number of targets; one
        wrong move costs 1.
    Endings: terminated at the last target; truncated after 2 * `max_position` (10) turns for each
        target.
    Success: return > `targets` - 1: the targets were reached without a wrong move (strict; what the
        papers report). A uniformly random policy with one target: 28.3 % success, 61.1 % solved
        (exact).
    Info: `target`, `current`, `solved` (the targets were reached at all), `return_positive`.
    Splits: train, val and test differ by seed only; they share the 30 starts.
    References: Zhai et al., NeurIPS 2024 (gym-cards). VL-DAC, arXiv 2508.04280.

    `compat="rl4vlm"` uses the published picture, reply parser and random fallback. The rules are
    the same. Not reproduced: numbers drawn from a global generator that `reset(seed=)` does not
    reach, and prompts that describe the previous episode.

    Args:
        max_position: largest number, 2 to 99.
        targets: number of targets; the first is drawn as published, each other uniformly.
        compat: `None` or `"rl4vlm"`, which has one target.

    Options of `reset`: `target` and `current` (both or none, different) choose the start; `level`.
    """

    prompt = PromptTemplate(
        version=1, instructions="You are playing NumberLine. {task}\n{format}", turn="{state}Legal actions: {actions}"
    )
    reset_options: ClassVar = {
        name: whole_number(meaning, 0, lambda env: env.max_position, "an integer from 0 to max_position")
        for name, meaning in (
            ("current", "your number at the start; together with target"),
            ("target", "the number to reach; not the current one"),
        )
    }
    level_arguments: ClassVar = tuple(
        {"max_position": largest, "targets": targets, "max_turns": 2 * largest * targets}
        for largest, targets in ((3, 1), (5, 1), (5, 2), (9, 2), (20, 2), (30, 3))
    )

    def __init__(self, *, max_position: int = 5, targets: int = 1, compat: str | None = None, **kwargs: Any) -> None:
        check_number("targets", targets, 1)
        if not (isinstance(max_position, int) and 2 <= max_position <= 99):
            raise UserError(f"max_position={max_position!r} must be an integer from 2 to 99.")
        self.max_position = max_position
        self.compat = compat
        self.targets = 1 if compat else targets
        kwargs = apply_compat(compat, kwargs, NUMBER_LINE_PARSER)
        kwargs["max_turns"] = kwargs.get("max_turns") or 2 * max_position * self.targets
        super().__init__(**kwargs)
        self.target = self.current = 0
        self.later: list[int] = []

    def start(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        self.current, self.target = (int(n) for n in rng.integers(0, self.max_position + 1, size=2))
        if self.current == self.target:
            self.target = (self.target + 1) % self.max_position
        if options:
            current, target = options.get("current"), options.get("target")
            if current is None or target is None:
                raise UserError("reset options target and current belong together: give both, or neither.")
            if current == target:
                raise UserError(f"reset options target and current are both {target}; they must differ.")
            self.current, self.target = current, target

        # Each later target differs from the one before it.
        self.later, before = [], self.target
        for _ in range(self.targets - 1):
            before = (before + int(rng.integers(1, self.max_position + 1))) % (self.max_position + 1)
            self.later.append(before)

    def act(self, action: str) -> Outcome:
        before = abs(self.target - self.current)
        self.current = min(max(self.current + (1 if action == "+" else -1), 0), self.max_position)
        if self.current == self.target:
            if self.later:
                self.target = self.later.pop(0)
                return Outcome(1.0, feedback="target reached, a new one is shown")
            return Outcome(1.0, terminated=True, feedback="target reached")
        if abs(self.target - self.current) >= before:
            return Outcome(-1.0, feedback="not nearer")
        return Outcome(0.0, feedback="nearer")

    def image(self) -> NDArray[np.uint8]:
        return _draw(self.target, self.current, self.image_size, self.compat is not None).copy()

    def describe(self) -> str:
        return f"target {self.target}, current {self.current}"

    def task(self) -> str:
        more = f" Then a new target is shown, {self.targets} in all." if self.targets > 1 else ""
        return (
            f"The picture shows a target number and your current number, both from 0 to {self.max_position}. "
            "The action + adds one to the current number, the action - subtracts one. Make the "
            f"current number equal to the target number, without a step in the wrong direction.{more}"
        )

    def legal_actions(self) -> list[str]:
        return ["-", "+"]

    def oracle(self) -> str:
        return "+" if self.target > self.current else "-"

    def think(self, action: str) -> str:
        thoughts = f"target {self.target} current {self.current}"
        if not isinstance(self.parser, NumberLineParser):
            return thoughts
        return json.dumps({"current number": self.current, "target number": self.target, "thoughts": thoughts})

    def success(self) -> bool:
        """All targets are reached without a wrong move."""
        return self.episode_return > self.targets - 1

    def extra_info(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "current": self.current,
            "solved": self.current == self.target and not self.later,
            "return_positive": self.episode_return > 0,
        }


@lru_cache(maxsize=64)
def _draw(target: int, current: int, size: tuple[int, int], published: bool) -> NDArray[np.uint8]:
    """Draw a frame, read-only since it is shared. There are few states, so most steps copy one."""
    frame = (_draw_published if published else _draw_large)(target, current, size)
    frame.setflags(write=False)
    return frame


def _draw_published(target: int, current: int, size: tuple[int, int]) -> NDArray[np.uint8]:
    canvas = Canvas(size, WHITE)
    canvas.write(f"Target: {target}", 30, 60, 36, BLACK)
    canvas.write(f"Current: {current}", 30, 180, 36, BLACK)
    return canvas.finish()


def _draw_large(target: int, current: int, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Draw two rows, each a word in the left half and a number in the third quarter of the width.

    Each number is as large as that quarter allows, so a small vision model whose patches tile the
    picture (4 x 2 patches of 28 pixels at 56 x 112) sees it whole in one patch.
    """
    height, width = size
    picture = Image.new("RGB", (width, height), WHITE)
    pen = ImageDraw.Draw(picture)

    # A number of two digits takes the whole right half.
    centre, room = (0.75, 0.46) if max(target, current) > 9 else (0.625, 0.23)
    label = min(round(height * 0.12), round(width * 0.105))
    while label >= SMALLEST_LABEL and font(label).getlength("Current") > 0.44 * width:
        label -= 1

    for row, (word, number) in enumerate((("Target", target), ("Current", current))):
        middle = (row + 0.5) * height / 2
        if label >= SMALLEST_LABEL:
            centre_text(pen, word, 0.25 * width, middle, 0.46 * width, label, BLACK)
        centre_text(pen, str(number), centre * width, middle, room * width, round(height * 0.5), BLACK, 0.42 * height)
    return np.array(picture)
