"""Football: what players earn who decide nothing, by how an episode begins.

    python tests/benchmarks/football_start.py --episodes 100 --records starts.jsonl --write

`idle` presses nothing at every frame (`action_set="19"`), `right` runs to the right, `random` draws of the 16 actions.
The starts are those of `vlgym/Football-v0` (the run that takes up the ball goes on), of `vlgym/Football-v1` (it is
released) and the published one (the model begins while nobody has the ball), each without the mix-up of actions, and
the last with it, too. Some minutes of one processor; an interrupted run goes on from its records.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from football_oracle import describe_mean, describe_share
from report import finish, parse_write, table

import vlgym
from vlgym.seeding import episode_seed

ID = "vlgym/Football-v0"
SEEDS_OF = "vlgym/Football-v1"
"""All starts are played with the seeds of one id, so that they meet the same situations."""

STARTS: dict[str, dict[str, Any]] = {
    "ball taken, run goes on (v0)": {"start": "with_ball", "release_direction": False},
    "ball taken, run released (v1)": {"start": "with_ball", "release_direction": True},
    "published": {"start": "published"},
    "published, with the mix-up": {"start": "published", "action_mix_up": True},
}
PLAYERS = ("idle", "right", "random")


def play(start: str, player: str, episodes: int, known: dict[tuple[str, str, int], Any]) -> Iterator[dict[str, Any]]:
    """Yield an episode's score, success and frames; those on record aside."""
    env = vlgym.make(ID, image_size=(32, 48), action_set="16" if player == "random" else "19", **STARTS[start])
    for index in range(episodes):
        if (start, player, index) in known:
            yield known[start, player, index]
            continue
        seed = episode_seed(SEEDS_OF, "test", index)
        _, info = env.reset(seed=seed)
        env.action_space.seed(seed % 2**32)
        ended = False
        while not ended:
            reply = env.action_space.sample() if player == "random" else env.parser.format([player])
            _, _, terminated, truncated, info = env.step(reply)
            ended = terminated or truncated
        yield {
            "start": start, "player": player, "index": index, "score": info["score"], "success": info["success"],
            "frames": info["frame"],
        }  # fmt: skip
    env.close()


def main() -> None:
    """Play every player from every start and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--records", type=Path, help="file of finished episodes, read and continued")
    chosen = parse_write(__doc__ or "", parser)
    lines = chosen.records.read_text().splitlines() if chosen.records and chosen.records.exists() else []
    known = {(e["start"], e["player"], e["index"]): e for e in map(json.loads, lines)}
    rows = []
    for start in STARTS:
        for player in PLAYERS:
            played = []
            for episode in play(start, player, chosen.episodes, known):
                played.append(episode)
                if chosen.records and (start, player, episode["index"]) not in known:
                    with open(chosen.records, "a", encoding="utf-8") as file:
                        file.write(json.dumps(episode) + "\n")
            scores = np.array([episode["score"] for episode in played])
            rows.append([
                start, player, describe_mean(scores), describe_share(sum(e["success"] for e in played), len(played)),
                f"{np.mean([e['frames'] for e in played]):.0f}",
            ])  # fmt: skip
            print(rows[-1], flush=True)
    body = (
        f"Test episodes 0 to {chosen.episodes - 1} of `{SEEDS_OF}`, the same situations for all; MageBench's score. "
        "The paper's idle player scores 2.53, its random player 17.33, in its own situations. Intervals: normal for "
        "means, Wilson's for shares.\n\n"
        + table(["start", "player", "score, mean (95 %)", "episodes with a goal (95 %)", "frames at the end"], rows)
    )
    finish(
        "football_start", "Football: who decides nothing, by the start", body,
        ["vlgym", "vlgym-football", "gfootball", "numpy"], chosen.write,
    )  # fmt: skip


if __name__ == "__main__":
    main()
