"""SmolLM2 as published, in words: how often it wins, and why it does not.

    python tests/benchmarks/real_model.py --out runs/real --write

Evaluations by `vlgym eval`, one after another, each of which a second call goes on with. They take hours on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from report import finish, parse, table

from baselines.studies.processes import RESULTS_FOLDER, note_made
from vlgym.play.trajectory import read_trajectories

IDS = (
    "NumberLine-v1", "EZPoints-v1", "Blackjack-v0", "OneRoomS6Fast-v1", "TicTacToe-v0", "ConnectFour-v0",
    "Breakthrough-v0", "ScreensClick-v0", "ScreensFind-v0", "SokobanDrawn-v0",
)  # fmt: skip
"""Of all families that have words."""
MODEL = ("--policy", "hf:smollm2", "--policy-arg", "threads=1", "--max-tokens", "32", "--num-envs", "30")
SILENT = "without feedback"
RUNS: dict[str, tuple[str, ...]] = {
    "random": ("--policy", "random"),
    "as published": MODEL,
    "two examples": (*MODEL, "--few-shot", "2"),
    SILENT: (*MODEL, "--env-kwargs", "invalid_action=published"),
}
"""Player -> options. The last plays the first environment alone; its reward is the paper's."""


def play(name: str, out: Path, episodes: int) -> None:
    """Play the held-out episodes of a player, or go on with them."""
    ids = ",".join(f"vlgym/{each}" for each in (IDS[:1] if name == SILENT else IDS))
    command = [sys.executable, "-m", "vlgym", "eval", *RUNS[name], "--env", ids, "--episodes", str(episodes)]
    words = ["--modality", "text", "--no-probe", "--out", str(out)]
    subprocess.run([*command, *words, *(["--resume"] if (out / "run.json").is_file() else [])], check=True)


def read_rows(name: str, out: Path) -> list[dict[str, Any]]:
    """Return a row per environment: success, how the replies were read, and the first replies of two episodes."""
    report, replies = json.loads((out / "report.json").read_text(encoding="utf-8")), dict[str, list[str]]()
    for episode in read_trajectories(out, images=False):
        if name != "random" and len(replies.setdefault(episode[0].env_id, [])) < 2:
            replies[episode[0].env_id].append(episode[0].reply)
    return [
        {
            "player": name, "env": env_id, "success": part["success"], "invalid": part["invalid"],
            "forms": part["forms"], "replies": part["replies"], "examples": replies.get(env_id, []),
        }
        for env_id, part in report["parts"].items()
    ]  # fmt: skip


def main() -> None:
    """Play all, print a table, and publish the rows with `--write`."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=30, help="of each environment")
    parser.add_argument("--players", nargs="+", choices=[*RUNS], default=[*RUNS], help="which to play; default all")
    parser.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="folder that keeps what was played")
    parser.add_argument("--write", action="store_true", help="write docs/studies/real-model.json")
    args = parse(__doc__ or "", parser)
    rows = []
    for name in args.players:
        out = args.out / name.replace(" ", "-")
        play(name, out, args.episodes)
        rows += read_rows(name, out)
    if args.write:
        note_made("real-model")
        text = json.dumps(rows, indent=1, ensure_ascii=False)
        (RESULTS_FOLDER / "real-model.json").write_text(f"{text}\n", encoding="utf-8")
    cells = [[row["env"], row["player"], row["success"]["rate"], row["invalid"]["rate"], row["forms"]] for row in rows]
    header = ("environment", "player", "success", "unreadable", "forms")
    finish("real_model", "A real model", table(header, cells), ("vlgym", "torch", "transformers"))


if __name__ == "__main__":
    main()
