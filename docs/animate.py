"""Draw the gallery's moving pictures: the oracle's first test episode of every environment, as a model sees it.

    python docs/animate.py build/gallery               # build/gallery/animations/*.webp, for the site
    python docs/animate.py build/gallery --id vlgym/NumberLine-v1
    python docs/animate.py --first vlgym/templates/static/first    # the first pictures, for the gallery of `vlgym ui`
    python docs/animate.py --cover docs/images         # the README's: four episodes side by side, a picture a family
    python docs/animate.py --sheet docs/images --id vlgym/WebShop-v1    # every turn of a short episode on one picture

What stands there already is kept. Needs the plugins installed.
"""

import argparse
import sys
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

from generate import list_shown  # noqa: E402

from vlgym.env.seeding import episode_seed  # noqa: E402
from vlgym.files import write_whole  # noqa: E402
from vlgym.play.env_failures import close_env  # noqa: E402
from vlgym.registry.making import make  # noqa: E402

MOST, SECOND, WIDTH = 40, 1000, 224
"""Pictures of an animation, milliseconds in a second, and pixels from left to right."""
COVER = ("vlgym/OneRoom-v1", "vlgym/Sokoban-v0", "vlgym/ALFWorld-v1", "vlgym/Football-v1")
SHORT_EPISODES, MOST_TILES = 50, 8
"""Episodes among which a short one is looked for, and pictures of a sheet."""
GAP = 8
"""Pixels between the pictures of the cover."""
FAMILIES = (
    "vlgym/ALFWorld-v1", "vlgym/NumberLine-v1", "vlgym/Football-v1", "vlgym/OneRoom-v1", "vlgym/ConnectFour-v0",
    "vlgym/SeeCell-v0", "vlgym/Sokoban-v0", "vlgym/WebShop-v1", "vlgym/WebUI-v1", "vlgym/BabyAIGoTo-v0",
    "vlgym/ScreensClick-v0",
)  # fmt: skip
"""An environment of each family, whose picture stands for it."""


def main() -> None:
    """Draw what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where `animations` is made")
    parser.add_argument("--cover", type=Path, metavar="FOLDER", help="draw the README's pictures only")
    parser.add_argument("--first", type=Path, metavar="FOLDER", help="draw the first pictures only")
    parser.add_argument("--sheet", type=Path, metavar="FOLDER", help="draw the sheets of the ids only")
    parser.add_argument("--id", action="append", metavar="ID", help="only this environment; may be repeated")
    asked = parser.parse_args()
    if asked.cover:
        episodes = {env_id: play(env_id) for env_id in FAMILIES}
        save(join([episodes[env_id] for env_id in COVER]), asked.cover / "episodes.webp", SECOND // 4)
        for env_id, frames in episodes.items():
            frames[len(frames) // 2].save(asked.cover / f"{env_id.partition('/')[2]}.png", optimize=True)
        return
    if asked.sheet:
        for env_id in asked.id or []:
            family = env_id.partition("/")[2].partition("-")[0].lower()
            draw_sheet(env_id).save(asked.sheet / f"{family}_episode.png", optimize=True)
        return
    if asked.folder is None and asked.first is None:
        parser.error("name a folder, --first FOLDER or --cover FOLDER")
    folder = asked.first or asked.folder / "animations"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [spec.id for spec in list_shown() if not asked.id or spec.id in asked.id]
    for number, env_id in enumerate(chosen, 1):
        path = folder / f"{env_id.replace('/', '-')}.webp"
        if not path.exists():
            print(f"{number} of {len(chosen)}: {env_id}", file=sys.stderr, flush=True)
            if asked.first:
                draw_first(env_id).save(path, "WEBP", quality=70, method=6)
            else:
                save(play(env_id), path)


def draw_first(env_id: str) -> Image.Image:
    """Return the first picture of the first training episode."""
    env = make(env_id)
    try:
        return shrink(env.reset(seed=episode_seed(env_id, "train", 0))[0]["image"])
    finally:
        close_env(env)


def play(env_id: str) -> list[Image.Image]:
    """Return the pictures of an episode, smaller, the first and the last among them."""
    env = make(env_id)
    try:
        observation, _ = env.reset(seed=episode_seed(env_id, "test", 0))
        frames, ended = [shrink(observation["image"])], False
        while not ended:
            observation, _, terminated, truncated, _ = env.step(env.solve() or env.action_space.sample())
            frames.append(shrink(observation["image"]))
            ended = terminated or truncated
    finally:
        close_env(env)
    chosen = range(len(frames)) if len(frames) <= MOST else (k * (len(frames) - 1) // (MOST - 1) for k in range(MOST))
    return [frames[index] for index in chosen]


def draw_sheet(env_id: str) -> Image.Image:
    """Return all turns of the longest of some short test episodes of the oracle: picture, action, reward."""
    env, best, task = make(env_id), list[tuple[Image.Image, str]](), ""
    try:
        for number in range(SHORT_EPISODES):
            observation, _ = env.reset(seed=episode_seed(env_id, "test", number))
            tiles, ended = [], False
            while not ended and len(tiles) < MOST_TILES:
                reply, seen = env.solve(), observation["image"]
                observation, reward, terminated, truncated, info = env.step(reply)
                label = f"{len(tiles) + 1}. {', '.join(info['vlgym']['actions'])} (reward {reward:g})"
                tiles.append((Image.fromarray(seen), label))
                ended = terminated or truncated
            if info["success"] and len(best) <= len(tiles) < MOST_TILES:
                best, task = tiles, env.unwrapped.task()
                best.append(
                    (Image.fromarray(observation["image"]), f"The end: return {env.unwrapped.episode_return:g}")
                )
    finally:
        close_env(env)
    font, wide = ImageFont.load_default(size=16), 480
    pictures = [picture.resize((wide, round(picture.height * wide / picture.width))) for picture, _ in best]
    tall = max(picture.height for picture in pictures) + 52
    canvas = Image.new("RGB", (2 * (wide + GAP) + GAP, 52 + (len(best) + 1) // 2 * tall), "white")
    pen = ImageDraw.Draw(canvas)
    pen.text((GAP, 6), textwrap.fill(task, 110), "black", font)
    for place, (picture, (_, label)) in enumerate(zip(pictures, best, strict=True)):
        left, top = GAP + place % 2 * (wide + GAP), 52 + place // 2 * tall
        canvas.paste(picture, (left, top))
        pen.rectangle((left, top, left + wide - 1, top + picture.height - 1), outline="gray")
        pen.text((left, top + picture.height + 4), textwrap.fill(label, 55), "navy", font)
    return canvas


def join(episodes: list[list[Image.Image]]) -> list[Image.Image]:
    """Return the pictures of several episodes side by side; an episode that has ended keeps its last picture."""
    height = max(frames[0].height for frames in episodes)
    joined = []
    for index in range(max(len(frames) for frames in episodes)):
        canvas = Image.new("RGB", (len(episodes) * (WIDTH + GAP) - GAP, height), "white")
        for place, frames in enumerate(episodes):
            frame = frames[min(index, len(frames) - 1)]
            canvas.paste(frame, (place * (WIDTH + GAP), (height - frame.height) // 2))
        joined.append(canvas)
    return joined


def shrink(image: object) -> Image.Image:
    """Return a picture of the gallery's width."""
    picture = Image.fromarray(image)  # type: ignore[arg-type]
    return picture.resize((WIDTH, max(1, round(picture.height * WIDTH / picture.width))), Image.Resampling.LANCZOS)


def save(frames: list[Image.Image], path: Path, pause: int = SECOND // 2) -> None:
    """Write an animation that begins again after its last picture was shown for two seconds."""
    part = path.with_suffix(".part")
    times = [pause] * (len(frames) - 1) + [2 * SECOND]
    frames[0].save(part, "WEBP", save_all=True, append_images=frames[1:], duration=times, loop=0, quality=70)
    write_whole(path, part.read_bytes())
    part.unlink()


if __name__ == "__main__":
    main()
