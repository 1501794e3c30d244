"""Draw the pictures in docs/images: `python docs/pictures.py gallery sokoban`; without names, all of them.

gallery.png is one frame of each of a dozen environments, as a model sees them; `studies` redraws the plots of
docs/studies/ from the raw runs beside them; terminal.png is what `vlgym play` prints into a wide terminal of true
colours; the others are frames of one episode each, which the oracle plays (the first WebUI reply leaves the style sheet
out). Needs the plugins installed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rich.terminal_theme import MONOKAI

from vlgym.evaluation import plan_ids, run_evaluation
from vlgym.making import make, unwrap
from vlgym.policies import RandomPolicy
from vlgym.registry import get_registry
from vlgym.rendering import fit_image
from vlgym.reports.writing import write_report
from vlgym.seeding import episode_seed

CHOSEN = (
    "NumberLine", "EZPoints", "Points24", "Blackjack", "OneRoom", "PutNext", "Sign",
    "ALFWorld", "WebShop", "Sokoban", "Football", "WebUI",
)  # fmt: skip
GAMES = (
    "TicTacToe", "ConnectFour", "Breakthrough", "ChessEndings", "Battleship", "KuhnPoker", "LeducHoldem", "Hanabi",
    "KitchenPair", "CoinGame", "MPESpread", "MPETag", "KnightsArchersZombies", "FootballTeam",
)  # fmt: skip
SHOWN = {"FootballTeam": 2}
"""The test episode that is drawn of a game, where it is not the first: the first in which the team scores in more than
a few decisions."""
GROUPS = ("small-v0", "small-v1", "v0", "v1", "v2", "large-v0", "large-v1", "huge-v0")
TILE, LABEL, COLUMNS, GAP = 224, 22, 4, 8
LONGEST = 120
COLORS = 128
IMAGES = Path(__file__).parent / "images"

Tile = tuple[str, np.ndarray]
"""Caption, and picture `[H, W, 3] uint8`."""


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=PICTURES, default=[*PICTURES], help="pictures to draw")
    for name in parser.parse_args().names:
        PICTURES[name]()


def draw_gallery() -> None:
    """One frame of each of the chosen environments that are installed."""
    titles = {spec.title: env_id for env_id, spec in get_registry().specs.items()}
    save("gallery", [(title, draw(titles[title])) for title in CHOSEN if title in titles], COLUMNS)


def draw_evaluation() -> None:
    """The page of a report, as a browser shows it."""
    ids = ["vlgym/NumberLine-v0", "vlgym/Blackjack-v0", "vlgym/OneRoomS6Fast-v0", "vlgym/Sokoban-v0"]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        run_evaluation(plan_ids(ids, episodes=20), RandomPolicy(), run)
        write_report(run)
        photograph(run / "report.html", "report", 1300)


def photograph(page: Path, name: str, height: int) -> None:
    """Write what a browser shows of a page, from its top."""
    path = IMAGES / f"{name}.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size=1100,{height}", "--hide-scrollbars"]
    subprocess.run(["chromium", *options, f"--screenshot={path}", page.as_uri()], check=True, capture_output=True)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLORS).save(path, optimize=True)
    print(path)


def draw_terminal() -> None:
    """A turn that a person plays, as a terminal with half blocks shows it."""
    from rich.console import Console
    from rich.text import Text

    command = [sys.executable, "-m", "vlgym", "play", "vlgym/Sokoban-v0", "--seed", "3", "--picture", "blocks"]
    settings = {**os.environ, "COLUMNS": "110", "COLORTERM": "truecolor"}
    with tempfile.TemporaryDirectory() as folder:
        played = subprocess.run(
            command, input="1\n:quit\n", env=settings, cwd=folder, capture_output=True, text=True, check=True
        )
        console = Console(record=True, width=110, file=io.StringIO(), legacy_windows=False)
        console.print(Text.from_ansi(f"$ vlgym {' '.join(command[3:])}\n{played.stdout}"))
        page = Path(folder) / "terminal.html"
        page.write_text(console.export_html(theme=MONOKAI), encoding="utf-8")
        photograph(page, "terminal", 1110)


def draw_sokoban() -> None:
    """Four frames of a solved level, and the first level of every group."""
    frames = play("vlgym/Sokoban-v0", {"group": "small-v1", "level": 3}, describe_sokoban)
    save("sokoban_episode", pick(frames, 4), 4)
    starts = []
    for group in GROUPS:
        env = make("vlgym/Sokoban-v0", group=group, level=0)
        starts.append((group, fit_image(env.reset(seed=0)[0]["image"], (TILE, TILE))))
        env.close()
    save("sokoban_groups", starts, 4)


def draw_webui() -> None:
    """The last two boards of one episode: a page without its style sheet, and the whole page."""

    def without_style(env: Any) -> str:
        code = {name: text for name, text in env.project.code().items() if name != "style.css"}
        return "\n".join(f"```{name.rsplit('.')[-1]}\n{text}\n```" for name, text in code.items())

    kwargs = {"project": "login-form", "image_size": (480, 640)}
    save("webui_episode", play("vlgym/WebUI-v0", kwargs, describe_webui, [without_style])[1:], 2)


def draw_football() -> None:
    """Four frames of an attack from above, and one of the engine's own camera."""
    frames = play("vlgym/Football-v0", {"scenario": "R6_T_1"}, describe_football)
    save("football_episode", pick(frames, 4), 2)
    env = make("vlgym/Football-v0", scenario="R6_T_1", view="camera")
    save("football_camera", [("the camera view, first frame", env.reset(seed=0)[0]["image"])], 1)
    env.close()


def draw_sight() -> None:
    """Two questions of each probe of a single picture with their answers, and one history."""
    tiles = []
    for title in ("SeeDigit", "SeeColour", "SeeSide", "SeeCount", "SeeText", "SeeCard", "SeeCell"):
        for number in range(2):
            env = make(f"vlgym/{title}-v0")
            observation, info = env.reset(seed=episode_seed(f"vlgym/{title}-v0", "test", number))
            tiles.append((f"{title}: {info['answer']}", observation["image"]))
    history = play("vlgym/SeeHistory-v0", {}, describe_history, seed=episode_seed("vlgym/SeeHistory-v0", "test", 0))
    save("sight", [*tiles, ("", np.full((TILE, TILE, 3), 255, np.uint8)), *history[:4]], 5)


def draw_games() -> None:
    """Six pictures of a whole game of each kind, as the oracle's seat sees it against the oracle."""
    for title in GAMES:
        env_id = f"vlgym/{title}-v0"
        seed = episode_seed(env_id, "test", SHOWN.get(title, 0))
        frames = play(env_id, {"seat": 0, "opponents": "oracle"}, describe_game, seed=seed)
        save(f"game_{title.lower()}", pick(frames, 6), 3)


def draw_studies() -> None:
    """The plot of each study whose raw runs are kept."""
    from baselines.studies.arms import STUDIES
    from baselines.studies.report import draw

    for path in sorted((IMAGES.parent / "studies").glob("*.json")):
        draw(path.with_suffix(".png"), STUDIES[path.stem], json.loads(path.read_bytes()))


PICTURES: dict[str, Callable[[], None]] = {
    "gallery": draw_gallery, "evaluation": draw_evaluation, "sokoban": draw_sokoban, "webui": draw_webui,
    "football": draw_football, "terminal": draw_terminal, "sight": draw_sight, "games": draw_games,
    "studies": draw_studies,
}  # fmt: skip


def draw(env_id: str) -> np.ndarray:
    """Return the frame at two thirds of the oracle's first test episode, `[TILE, TILE, 3] uint8`."""
    frames = play(env_id, {}, lambda info: "", seed=episode_seed(env_id, "test", 0))
    return fit_image(frames[(len(frames) - 1) * 2 // 3][1], (TILE, TILE))


def play(
    env_id: str,
    kwargs: dict[str, Any],
    describe: Callable[[dict[str, Any]], str],
    first: Sequence[Callable[[Any], str]] = (),
    seed: int = 0,
) -> list[Tile]:
    """Return every frame of an episode: `first` gives the first replies, then the oracle plays."""
    env = make(env_id, **kwargs)
    observation, info = env.reset(seed=seed)
    frames, ended, replies = [(describe(info), observation["image"])], False, list(first)
    while not ended and len(frames) < LONGEST:
        reply = replies.pop(0)(unwrap(env)) if replies else env.solve() or env.action_space.sample()
        observation, _, terminated, truncated, info = env.step(reply)
        frames.append((describe(info), observation["image"]))
        ended = terminated or truncated
    env.close()
    return frames


def pick(frames: Sequence[Tile], count: int) -> list[Tile]:
    """Return `count` frames at equal distances, the first and the last among them."""
    return [frames[round(index * (len(frames) - 1) / (count - 1))] for index in range(count)]


def describe_sokoban(info: dict[str, Any]) -> str:
    """Steps, boxes and score."""
    return f"step {info['steps']}, {info['boxes_on_target']} of {info['boxes']} boxes, score {info['score']:.1f}"


def describe_webui(info: dict[str, Any]) -> str:
    """What the page is worth."""
    return f"reply {info['vlgym']['turn']}, score {info['score']:.1f}"


def describe_football(info: dict[str, Any]) -> str:
    """Frame, score and how it ended."""
    return f"frame {info['frame']}, score {info['score']:.1f}{', ' if info['ending'] else ''}{info['ending']}"


def describe_history(info: dict[str, Any]) -> str:
    """Which picture it is, and beside the last one the question and its answer."""
    last = info["vlgym"]["turn"] == 3
    place = ("first", "second", "third", "last")[info["asked"]]
    return f"SeeHistory: the {place}? {info['answer']}" if last else f"SeeHistory: picture {info['vlgym']['turn'] + 1}"


def describe_game(info: dict[str, Any]) -> str:
    """Which turn of this seat it is, and what was won."""
    return f"turn {info['vlgym']['turn'] + 1}{', won' if info['success'] else ''}"


def save(name: str, tiles: Sequence[Tile], columns: int) -> None:
    """Write captioned pictures of one size as a sheet of at most `COLORS` colours."""
    height, width = tiles[0][1].shape[:2]
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * (width + GAP) + GAP, rows * (height + LABEL + GAP) + GAP), (255, 255, 255))
    pen = ImageDraw.Draw(sheet)
    for index, (caption, image) in enumerate(tiles):
        x = GAP + (index % columns) * (width + GAP)
        y = GAP + (index // columns) * (height + LABEL + GAP)
        sheet.paste(Image.fromarray(image), (x, y))
        pen.text((x, y + height + 3), caption, fill=(30, 30, 30), font=ImageFont.load_default(14))
    path = IMAGES / f"{name}.png"
    sheet.quantize(COLORS).save(path, optimize=True)
    print(f"{path.name}: {len(tiles)} pictures, {path.stat().st_size // 1024} KiB", file=sys.stderr)


if __name__ == "__main__":
    main()
