"""Draw docs/images/gallery.png: one frame of each of a dozen environments, as a model sees them. Needs the plugins
installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from vlgym.making import make
from vlgym.registry import get_registry
from vlgym.rendering import fit_image
from vlgym.seeding import episode_seed

CHOSEN = (
    "NumberLine", "EZPoints", "Points24", "Blackjack", "OneRoom", "PutNext", "Sign",
    "ALFWorld", "WebShop", "Sokoban", "Football", "WebUI",
)  # fmt: skip
TILE, LABEL, COLUMNS = 224, 22, 4
LONGEST = 120


def main() -> None:
    """Draw what is installed."""
    titles = {spec.title: env_id for env_id, spec in get_registry().specs.items()}
    tiles = [(title, draw(titles[title])) for title in CHOSEN if title in titles]
    rows = -(-len(tiles) // COLUMNS)
    sheet = Image.new("RGB", (COLUMNS * (TILE + 8) + 8, rows * (TILE + LABEL + 8) + 8), (255, 255, 255))
    pen = ImageDraw.Draw(sheet)
    for index, (title, image) in enumerate(tiles):
        x = 8 + (index % COLUMNS) * (TILE + 8)
        y = 8 + (index // COLUMNS) * (TILE + LABEL + 8)
        sheet.paste(Image.fromarray(image), (x, y))
        pen.text((x, y + TILE + 3), title, fill=(30, 30, 30), font=ImageFont.load_default(14))
    path = Path(__file__).parent / "images" / "gallery.png"
    sheet.quantize(128).save(path, optimize=True)
    print(f"{path.name}: {len(tiles)} environments, {path.stat().st_size // 1024} KiB", file=sys.stderr)


def draw(env_id: str) -> np.ndarray:
    """Return the frame in the middle of the oracle's first test episode, `[TILE, TILE, 3] uint8`."""
    env = make(env_id)
    observation, _ = env.reset(seed=episode_seed(env_id, "test", 0))
    frames, ended = [observation["image"]], False
    while not ended and len(frames) < LONGEST:
        observation, _, terminated, truncated, _ = env.step(env.solve() or env.action_space.sample())
        frames.append(observation["image"])
        ended = terminated or truncated
    env.close()
    return fit_image(frames[(len(frames) - 1) * 2 // 3], (TILE, TILE))


if __name__ == "__main__":
    main()
