"""Time of the pages of `vlgym ui` with 10,000 recorded episodes.

    python tests/benchmarks/page.py

The records are made on the spot: 10,000 episodes of five turns, each turn with a prompt of 2,000
characters and a picture of 224 x 224 pixels (of 100 different ones). Pages are asked for over HTTP
from a server in this process. The server answers once every record was read; reading the same file
by `read_trajectories` is what it is compared with.
"""

import json
import queue
import random
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
from report import finish, make_parser, table

from vlgym.env.rendering import encode_png
from vlgym.files import seal
from vlgym.play.trajectory import FORMAT, hash_picture, read_trajectories
from vlgym.ui.site import serve_page

EPISODES, TURNS, PICTURES, REPEATS = 10_000, 5, 100, 30


def make_records(folder: Path) -> None:
    """Write the records."""
    rng = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(seal({"format": FORMAT, "title": "many episodes"})))
    names = []
    for _ in range(PICTURES):
        image = rng.integers(0, 256, (224, 224, 3), dtype=np.uint8)
        names.append(f"images/{hash_picture(image)}.png")
        (folder / names[-1]).write_bytes(encode_png(image))
    with (folder / "metadata.jsonl").open("w", encoding="utf-8") as file:
        for episode in range(EPISODES):
            for turn in range(TURNS):
                name, last = names[(episode + turn) % PICTURES], turn == TURNS - 1
                parts = [{"type": "image", "file_name": name}, {"type": "text", "text": "x" * 2000}]
                row = {
                    "file_name": name, "env_id": "vlgym/Line-v0", "episode": episode,
                    "seed": episode, "turn": turn,
                    "text": "", "reply": f"I go <action>right</action> {episode}",
                    "actions": ["right"], "parse": "ok",
                    "reward": float(last), "terminated": last, "truncated": False, "invalid": False,
                    "success": last and episode % 2 == 0, "score": None, "part": "", "repeat": 0,
                    "cut": False,
                    "refused": False, "after": "", "span": [13, 18], "usage": None,
                    "prompt": json.dumps([{"role": "user", "content": parts}]),
                }  # fmt: skip
                file.write(json.dumps(seal(row)) + "\n")


def get(address: str) -> str:
    """Return the body of an answer."""
    with urllib.request.urlopen(address, timeout=120) as answer:
        return answer.read().decode(errors="replace")


def measure(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - begun)


def main() -> None:
    make_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        make_records(folder)
        begun, addresses = time.perf_counter(), queue.Queue[str]()
        arguments = ([folder], Path(place) / "human", 0, addresses.put)
        threading.Thread(target=serve_page, args=arguments, daemon=True).start()
        address = addresses.get(timeout=120)
        first = 1000 * (time.perf_counter() - begun)
        cookies = urllib.request.HTTPCookieProcessor()
        urllib.request.install_opener(urllib.request.build_opener(cookies))
        get(address)  # brings the token, and from then on the cookie does
        server = address.partition("/?")[0]
        rng, key = random.Random(0), get(f"{server}/episodes").split('<td><a href="')[1].split("/")[2]
        pictures = [path.name for path in (folder / "images").iterdir()]
        pages = {
            "the runs": lambda: "",
            "the list, newest first": lambda: "episodes",
            "the list, sorted by return": lambda: "episodes?sort=-return",
            "the list, words searched in all replies": lambda: f"episodes?q=action>+{rng.randrange(EPISODES)}",
            "the last page of the list": lambda: "episodes?page=200",
            "a turn": lambda: f"turn/{key}/{rng.randrange(EPISODES)}/{rng.randrange(TURNS)}",
            "a turn's picture": lambda: f"picture/{key}/images/{rng.choice(pictures)}",
        }
        rows = []
        for name, page in pages.items():
            times = [measure(lambda page=page: get(f"{server}/{page()}")) for _ in range(REPEATS)]
            rows.append([name, f"{statistics.median(times):.0f}", f"{max(times):.0f}"])
        whole = measure(lambda: [episode[0].env_id for episode in read_trajectories(folder, images=False)])
    body = (
        f"{EPISODES:,} episodes of {TURNS} turns. Until the page answers: {first / 1000:.1f} s, {first / whole:.2f} "
        f"times what `read_trajectories` takes for the file ({whole / 1000:.1f} s). After that, in {REPEATS} requests "
        "each:\n\n" + table(["page", "median, ms", "slowest, ms"], rows)
    )
    finish("page", "The web page with many records", body, ["starlette", "uvicorn", "jinja2"])


if __name__ == "__main__":
    main()
