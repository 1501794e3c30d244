"""Folders of records for the tests of the web page, and a client that asks as a browser does."""

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from vlgym.env.rendering import encode_png
from vlgym.env_groups import LOCAL
from vlgym.files import seal
from vlgym.play.trajectory import TrajectoryWriter, hash_picture
from vlgym.types import Image, LearnerNotes, StepRecord
from vlgym.ui.site import create_app

BASE = "http://127.0.0.1:8421"
LINE = "vlgym/Line-v0"


def ask(*paths: Path, base: str = BASE, processes: bool = False) -> TestClient:
    """Return a client of a server that shows folders, and plays in this process by default."""
    out = (paths or (Path("/nowhere"),))[0] / "human"
    cookies = {f"vlgym_{base.rpartition(':')[2]}": "known"}
    app = create_app(paths, out, "known")
    if not processes:
        app.state.games.workers = lambda: LOCAL
    return TestClient(app, base_url=base, cookies=cookies, raise_server_exceptions=False)


def open_first(client: TestClient, query: str = "") -> tuple[str, str]:
    """Address and page of the first episode of a list."""
    (address, *_) = re.findall(r'<td><a href="(/turn/[^"]*)"', client.get(f"/episodes{query}").text)
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200, address
    return html.unescape(address), answer.text


def draw(shade: int, size: tuple[int, int] = (24, 32)) -> Image:
    """A picture in one colour."""
    return np.full((*size, 3), shade, np.uint8)


def play(
    number: int, rewards: Sequence[float] = (0.0, 1.0), *, success: bool = True, env_id: str = LINE,
    seed: int | None = None, replies: Sequence[str] = (), codes: Sequence[str] = (),
    notes: Mapping[int, LearnerNotes] | None = None, part: str = "", history: bool = False,
) -> list[StepRecord]:  # fmt: skip
    """An episode; by default replies are `I go <action>right</action>`, the seed 1000 + number."""
    records: list[StepRecord] = []
    for turn, reward in enumerate(rewards):
        image, last = draw((40 * number + 60 * turn) % 256), turn == len(rewards) - 1
        before = records[-1:] if history else []
        earlier = [{"type": "image", "image": record.image} for record in before]
        reply = replies[turn] if turn < len(replies) else "I go <action>right</action>"
        code = codes[turn] if turn < len(codes) else "ok"
        at = reply.find("<action>") + 8
        span = (at, reply.find("</action>")) if code == "ok" and "</action>" in reply else None
        picture = {"type": "image", "image": image}
        prompt = [
            {"role": "system", "content": [{"type": "text", "text": "You play."}]},
            {"role": "user", "content": [*earlier, picture, {"type": "text", "text": "Go."}]},
        ]
        records.append(
            StepRecord(
                env_id, number, 1000 + number if seed is None else seed, turn, prompt, image, "Go.", reply,
                ("right",) if span else (), code, reward, last and success, last and not success, span is None,
                last and success, span=span, part=part, learner=(notes or {}).get(turn),
            )
        )  # fmt: skip
    return records


def write(folder: Path, *episodes: list[StepRecord]) -> Path:
    """Write episodes as an evaluation does, or more of them into the same folder."""
    writer = TrajectoryWriter(folder, {"format": 4, "title": folder.name, "split": "test"})
    for episode in episodes:
        writer.write(episode)
    return folder


def write_raw(folder: Path, *lines: Mapping[str, Any] | bytes) -> Path:
    """Write lines of metadata.jsonl that nobody checks, and a picture for those that want one."""
    picture = draw(7)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "images" / f"{hash_picture(picture)}.png").write_bytes(encode_png(picture))
    data = [line if isinstance(line, bytes) else json.dumps(seal(line)).encode() + b"\n" for line in lines]
    (folder / "metadata.jsonl").write_bytes(b"".join(data))
    return folder


def row(**changes: Any) -> dict[str, Any]:
    """A line that is as it should be, but for some changes."""
    plain = {
        "file_name": f"images/{hash_picture(draw(7))}.png", "env_id": LINE, "episode": 0,
        "seed": 5, "turn": 0, "text": "", "reply": "hello", "actions": [], "parse": "ok",
        "reward": 1.0, "terminated": True, "truncated": False, "invalid": False, "success": True,
        "score": None, "part": "", "repeat": 0, "cut": False, "refused": False, "after": "",
        "span": None, "usage": None, "prompt": "[]",
    }  # fmt: skip
    return {**plain, **changes}


def write_log(folder: Path, values: Sequence[float]) -> Path:
    """Write a log of training."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"update": n + 1, "env_steps": 10 * (n + 1), "episode/success": v} for n, v in enumerate(values)]
    (folder / "log.jsonl").write_text("".join(json.dumps(seal(each)) + "\n" for each in rows))
    (folder / "run.json").write_text(json.dumps(seal({"format": 4, "title": "a run", "config": {"lr": 0.1}})))
    return folder
