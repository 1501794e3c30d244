"""Football: frames per second of the engine without drawing, tactical images per second, and replies per episode.

    python tests/benchmarks/football_speed.py --episodes 40 --rounds 5 --write

Frames are timed while players obey a fixed random sequence of commands, begun anew every few seconds of play; starting
a scenario is not timed. The random policy plays the same episodes of the test split with decision points and without.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from report import finish, parse_write, table
from vlgym_football.actions import ENGINE_CODES, get_action_set
from vlgym_football.engine import Engine, Snapshot
from vlgym_football.pitch import PitchPainter
from vlgym_football.scenario import get_scenario

from vlgym.evaluation import evaluate
from vlgym.policies import RandomPolicy
from vlgym.rollout import StepRecord

ID = "vlgym/Football-v0"
FULL, SMALL = "R5_P_1", "academy_empty_goal"
"""A situation of 11 against 11, and one of 2 against 1, goalkeepers counted."""

CHUNK = 30
"""Frames between two starts of the scenario, so that play stays near its start."""

SIZE = (336, 448)


def time_frames(engine: Engine, name: str, frames: int) -> tuple[float, list[Snapshot]]:
    """Play at least `frames` frames of a scenario; return frames per second, and the frames."""
    codes = [ENGINE_CODES[word] for word in get_action_set("16")]
    rng = np.random.default_rng(0)
    seen: list[Snapshot] = []
    spent = 0.0
    while len(seen) < frames:
        engine.begin(get_scenario(name), len(seen))
        chosen = [codes[index] for index in rng.integers(len(codes), size=CHUNK)]
        begun = time.perf_counter()
        played = [engine.advance(code) for code in chosen]
        spent += time.perf_counter() - begun
        seen += played
    return len(seen) / spent, seen


def time_images(seen: list[Snapshot]) -> float:
    """Return tactical images per second over these frames."""
    painter = PitchPainter(*SIZE)
    painter.draw(seen[0], frame_limit=400, sprint=False, dribble=False)
    begun = time.perf_counter()
    for now in seen:
        painter.draw(now, frame_limit=400, sprint=False, dribble=False)
    return len(seen) / (time.perf_counter() - begun)


def count_replies(episodes: int, decision_points: bool) -> list[int]:
    """Return the replies of each episode of the test split under the random policy."""
    lengths: list[int] = []

    def note(episode: list[StepRecord]) -> None:
        lengths.append(len(episode))

    # Small images: the random policy sees none, and their size changes no match.
    kwargs = {"decision_points": decision_points, "image_size": (112, 112)}
    evaluate(ID, RandomPolicy(), episodes=episodes, split="test", num_envs=1, env_kwargs=kwargs, on_episode=note)
    return lengths


def main() -> None:
    """Measure in interleaved rounds and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=300, help="frames and images of a round")
    chosen = parse_write(__doc__ or "", parser)
    full, small, drawn = [], [], []
    engine = Engine()
    for _ in range(chosen.rounds):
        rate, seen = time_frames(engine, FULL, chosen.frames)
        full.append(rate)
        small.append(time_frames(engine, SMALL, chosen.frames)[0])
        drawn.append(time_images(seen))
    engine.close()
    frames, few, images = (statistics.median(rates) for rates in (full, small, drawn))
    held, single = (count_replies(chosen.episodes, points) for points in (True, False))
    rows = [
        [f"engine frames/s, 11 v 11 (`{FULL}`)", f"{frames:,.0f}", "1"],
        [f"engine frames/s, 2 v 1 (`{SMALL}`)", f"{few:,.0f}", f"{few / frames:.2f} x 11 v 11"],
        [f"tactical images/s, {SIZE[0]} x {SIZE[1]}", f"{images:,.0f}", f"{images / frames:.2f} x 11 v 11 frames/s"],
        ["replies per episode, decision points", _spread(held), "1"],
        [
            "replies per episode, one frame each",
            _spread(single),
            f"{statistics.mean(single) / statistics.mean(held):.2f} x with decision points",
        ],
    ]
    body = (
        f"One process; speeds: median of {chosen.rounds} interleaved rounds of {chosen.frames} frames, nothing drawn "
        f"while the engine plays. Replies: `RandomPolicy`, test-split episodes 0 to {chosen.episodes - 1}.\n\n"
    )
    finish(
        "football_speed",
        "Football: speed, and replies per episode",
        body + table(["what", "measured", "ratio"], rows),
        ["vlgym", "vlgym-football", "gfootball", "numpy", "pillow"],
        chosen.write,
    )


def _spread(lengths: list[int]) -> str:
    return f"mean {statistics.mean(lengths):.1f}, median {statistics.median(lengths):g}, most {max(lengths)}"


if __name__ == "__main__":
    main()
