"""How far football's scripted attacker is ahead of random play: score, goals and replies over the same episodes.

    python tests/benchmarks/football_oracle.py --episodes 200 --academy 20 --records played.jsonl --write

The test split draws its situations from the 108. The academy's easier exercises are played besides, by the attacker
only, to see whether it finishes what a beginner should. About ten minutes of one processor; with `--records` every
finished episode is noted in a file, and an interrupted run goes on from there.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from report import finish, parse_write, table

import vlgym
from vlgym.intervals import wilson_interval
from vlgym.seeding import episode_seed

ID = "vlgym/Football-v0"
SIZE = (112, 112)
"""Small pictures: neither policy sees them, and their size changes no match."""

ACADEMY = (
    "academy_empty_goal_close", "academy_empty_goal", "academy_run_to_score", "academy_run_to_score_with_keeper",
    "academy_pass_and_shoot_with_keeper", "academy_run_pass_and_shoot_with_keeper", "academy_3_vs_1_with_keeper",
)  # fmt: skip
NORMAL = 1.959964
"""Standard errors on each side of a mean that make 95 %."""


@dataclass(frozen=True)
class Episode:
    """One episode: who played what, and what came of it; `frames` counts from the first reply."""

    policy: str
    scenario: str
    index: int
    score: float
    success: bool
    replies: int
    frames: int


def describe_mean(values: NDArray[np.float64]) -> str:
    """Return mean and 95 % interval in words."""
    half = NORMAL * float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return f"{np.mean(values):.1f} ({np.mean(values) - half:.1f} to {np.mean(values) + half:.1f})"


def describe_share(wins: int, trials: int) -> str:
    """Return a share and its 95 % interval in words."""
    low, high = wilson_interval(wins, trials)
    return f"{wins}/{trials} = {wins / trials:.3f} ({low:.3f} to {high:.3f})"


def play(policy: str, episodes: int, records: Path | None, scenario: str = "any") -> list[Episode]:
    """Play the first episodes of the test split, those aside that are on record.

    `random` draws what `vlgym.policies.RandomPolicy` would draw there.
    """
    lines = records.read_text().splitlines() if records is not None and records.exists() else []
    known = {(e.policy, e.scenario, e.index): e for e in (Episode(**json.loads(line)) for line in lines)}
    env = vlgym.make(ID, scenario=scenario, image_size=SIZE)
    played = []
    for index in range(episodes):
        episode = known.get((policy, scenario, index))
        if episode is None:
            seed = episode_seed(ID, "test", index)
            _, info = env.reset(seed=seed)
            env.action_space.seed(seed % 2**32)
            first, count, ended = info["frame"], 0, False
            while not ended:
                reply = env.action_space.sample() if policy == "random" else env.solve() or ""
                _, _, terminated, truncated, info = env.step(reply)
                count, ended = count + 1, terminated or truncated
            frames = info["frame"] - first
            episode = Episode(policy, scenario, index, info["score"], info["success"], count, frames)
            if records is not None:
                with open(records, "a") as file:
                    file.write(json.dumps(asdict(episode)) + "\n")
        played.append(episode)
    env.close()
    return played


def row(played: list[Episode]) -> list[str]:
    """Return a policy's table row."""
    return [
        played[0].policy,
        describe_mean(np.array([e.score for e in played])),
        describe_share(sum(e.success for e in played), len(played)),
        f"{np.mean([e.replies for e in played]):.1f}",
        f"{np.mean([e.frames for e in played]):.1f}",
    ]


def main() -> None:
    """Play both policies and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--academy", type=int, default=20, help="episodes of each exercise of the academy")
    parser.add_argument("--records", type=Path, help="file of finished episodes, read and continued")
    chosen = parse_write(__doc__ or "", parser)
    random, oracle = (play(policy, chosen.episodes, chosen.records) for policy in ("random", "oracle"))
    ahead = np.array([e.score for e in oracle]) - np.array([e.score for e in random])
    exercises = []
    for name in ACADEMY:
        seen = play("oracle", chosen.academy, chosen.records, name)
        exercises.append([f"`{name}`", f"{sum(e.success for e in seen)}/{len(seen)}"])
    header = ["policy", "score, mean (95 %)", "episodes with a goal (95 %)", "replies", "frames"]
    body = (
        f"Test-split episodes 0 to {chosen.episodes - 1}, default arguments (the 108 situations, decision points, "
        "MageBench's score). Intervals: normal for means, Wilson's for shares.\n\n"
        f"{table(header, [row(random), row(oracle)])}\n\n"
        f"The oracle's margin, episode by episode: {describe_mean(ahead)} points; it has the higher score in "
        f"{np.mean(ahead > 0):.0%} of the episodes.\n\n## Exercises of the academy\n\n"
        f"{table(['exercise', 'oracle: episodes with a goal'], exercises)}"
    )
    finish(
        "football_oracle",
        "Football: the scripted attacker against random play",
        body,
        ["vlgym", "vlgym-football", "gfootball", "numpy"],
        chosen.write,
    )


if __name__ == "__main__":
    main()
