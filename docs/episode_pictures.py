"""Draw the strips of docs/alfworld.md and docs/webshop.md: an oracle episode each, the pictures as a model sees them,
below each what was said to it and what that paid. Needs both plugins installed.

    python docs/episode_pictures.py            # writes docs/images/alfworld_*.png and docs/images/webshop_*.png
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vlgym.making import make, unwrap

IMAGES = Path(__file__).parent / "images"
GAP = 10
"""Pixels between pictures."""

LETTERS = 50
"""Letters of a caption that fit the width of a picture; wide pictures get large letters, since pages shrink them."""

COLOURS = 256
"""Colours that a strip is reduced to, so that it stays under 150 kB."""


@dataclass(frozen=True)
class Strip:
    """One picture of a page.

    Attributes:
        name: file name without ending.
        env_id: environment.
        seed: seed of the episode.
        options: options of `reset`.
        columns: pictures side by side.
        only: numbers of the pictures to show, the first being 0; all of them if empty.
        detours: what is said at a turn (the first being 0) in place of the oracle's action.
    """

    name: str
    env_id: str
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    columns: int = 2
    only: tuple[int, ...] = ()
    detours: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """A picture and what was said to it.

    Attributes:
        image: `[H, W, 3] uint8`.
        said: the action that answered it; empty at the end of the episode.
        reward: what the action was paid.
    """

    image: NDArray[np.uint8]
    said: str
    reward: float


STRIPS = (
    Strip("alfworld_episode", "vlgym/ALFWorldHeat-v0", 2, only=(0, 1, 3, 4, 6, 7)),
    Strip("alfworld_kitchen", "vlgym/ALFWorldCool-v0", 3, {"scene": 9}, columns=1, only=(2,)),
    Strip(
        "webshop_episode", "vlgym/WebShop-v0", 0, {"goal": 8}, only=(0, 1, 2, 3, 5, 6), detours={2: "click[features]"}
    ),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the strips."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder to write to")
    parser.add_argument("names", nargs="*", help="strips to draw, all by default")
    chosen = parser.parse_args(arguments)
    for strip in STRIPS:
        if not chosen.names or strip.name in chosen.names:
            task, panels = play(strip)
            path = chosen.out / f"{strip.name}.png"
            # Maximum coverage keeps rare colours, such as the green bar of the only open door; k-means the common ones.
            sheet = draw(strip, task, panels).quantize(COLOURS, Image.Quantize.MAXCOVERAGE, 1, dither=Image.Dither.NONE)
            sheet.save(path, optimize=True)
            print(f"{path.name}: {len(panels)} turns, {path.stat().st_size // 1000} kB", file=sys.stderr)


def play(strip: Strip) -> tuple[str, list[Panel]]:
    """Let the oracle play; return the task and the panels, the last of which is the picture after the last action."""
    env = unwrap(make(strip.env_id))
    observation, _ = env.reset(seed=strip.seed, options=dict(strip.options))
    panels, ended = [], False
    while not ended:
        action, image = strip.detours.get(len(panels)) or env.oracle() or "", observation["image"]
        observation, reward, terminated, truncated, _ = env.step(env.parser.format([action]))
        panels.append(Panel(image, action, reward))
        ended = terminated or truncated
    panels.append(Panel(observation["image"], "", env.episode_return))
    task = env.task()
    env.close()
    return task, panels


def draw(strip: Strip, task: str, panels: Sequence[Panel]) -> Image.Image:
    """Lay the panels out in rows under the task's sentence."""
    shown = [(number, panels[number]) for number in strip.only or range(len(panels))]
    height, width = shown[0][1].image.shape[:2]
    font = ImageFont.load_default(width // 28)
    line = width // 21
    words = [textwrap.wrap(caption(number, panel), LETTERS) for number, panel in shown]
    below = line * max(len(lines) for lines in words) + GAP
    head = textwrap.wrap(task, LETTERS * strip.columns)
    top = line * len(head) + GAP
    rows = -(-len(shown) // strip.columns)
    sheet = Image.new("RGB", (strip.columns * (width + GAP) + GAP, top + rows * (height + below)), "white")
    pen = ImageDraw.Draw(sheet)
    pen.multiline_text((GAP, GAP // 2), "\n".join(head), "black", font=font)
    for index, (lines, (_, panel)) in enumerate(zip(words, shown, strict=True)):
        x = GAP + index % strip.columns * (width + GAP)
        y = top + index // strip.columns * (height + below)
        sheet.paste(Image.fromarray(panel.image), (x, y))
        pen.rectangle((x - 1, y - 1, x + width, y + height), outline=(150, 150, 150))
        pen.multiline_text((x, y + height + 4), "\n".join(lines), (20, 60, 140), font=font)
    return sheet


def caption(number: int, panel: Panel) -> str:
    """Return what stands below a picture."""
    if not panel.said:
        return f"The end: return {panel.reward:g}"
    return f"{number + 1}. {panel.said}   (reward {panel.reward:g})"


if __name__ == "__main__":
    main()
