"""Football: frames per second of the engine without drawing, tactical images per second, and replies per episode.

    python tests/benchmarks/football_speed.py --rounds 5 --write

Frames are timed while players obey a fixed random sequence of commands, restarted every few seconds of play; starting
a scenario is not timed. Seconds are the process's own processor time: engine and drawing use one thread and never wait,
so on an idle machine they are seconds of the clock. The random policy plays each of the 108 situations once with
decision points and once without.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from report import finish, parse_write, table
from vlgym_football.actions import ENGINE_CODES, get_action_set
from vlgym_football.engine import Engine, Snapshot
from vlgym_football.names import MAGEBENCH
from vlgym_football.pitch import PitchPainter
from vlgym_football.scenario import get_scenario

import vlgym
from vlgym.seeding import episode_seed

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
        begun = time.process_time()
        played = [engine.advance(code) for code in chosen]
        spent += time.process_time() - begun
        seen += played
    return len(seen) / spent, seen


def time_images(seen: list[Snapshot]) -> float:
    """Return tactical images per second over these frames."""
    painter = PitchPainter(*SIZE)
    painter.draw(seen[0], frame_limit=400, sprint=False, dribble=False)
    begun = time.process_time()
    for now in seen:
        painter.draw(now, frame_limit=400, sprint=False, dribble=False)
    return len(seen) / (time.process_time() - begun)


def count_replies(decision_points: bool) -> tuple[list[int], list[int]]:
    """Return replies and frames of the random policy in each of the 108 situations, seeds of the test split."""
    # Small images: the random policy sees none, and their size changes no match.
    env = vlgym.make(ID, decision_points=decision_points, image_size=(112, 112))
    replies, frames = [], []
    for index, name in enumerate(MAGEBENCH):
        seed = episode_seed(ID, "test", index)
        _, info = env.reset(seed=seed, options={"scenario": name})
        env.action_space.seed(seed % 2**32)
        first, count, ended = info["frame"], 0, False
        while not ended:
            _, _, terminated, truncated, info = env.step(env.action_space.sample())
            count, ended = count + 1, terminated or truncated
        replies.append(count)
        frames.append(info["frame"] - first)
    env.close()
    return replies, frames


def main() -> None:
    """Measure in interleaved rounds and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
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
    (held, frames_held), (single, _) = (count_replies(points) for points in (True, False))
    rows = [
        [f"engine frames/s, 11 v 11 (`{FULL}`)", f"{frames:,.0f}", "1"],
        [f"engine frames/s, 2 v 1 (`{SMALL}`)", f"{few:,.0f}", f"{few / frames:.2f} x 11 v 11"],
        [f"tactical images/s, {SIZE[0]} x {SIZE[1]}", f"{images:,.0f}", f"{images / frames:.2f} x 11 v 11 frames/s"],
        ["replies per episode, decision points", _spread(held), "1"],
        [
            "frames of these episodes",
            _spread(frames_held),
            f"{statistics.mean(frames_held) / statistics.mean(held):.2f} x their replies",
        ],
        [
            "replies per episode, one frame each",
            _spread(single),
            f"{statistics.mean(single) / statistics.mean(held):.2f} x with decision points",
        ],
    ]
    body = (
        f"One process; speeds: median of {chosen.rounds} interleaved rounds of {chosen.frames} frames, in seconds of "
        "processor time, nothing drawn while the engine plays. Replies: uniformly random ones, one episode of each of "
        f"the {len(MAGEBENCH)} situations, the same seeds with decision points and without; frames are counted from "
        "the first reply.\n\n"
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
