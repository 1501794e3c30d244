"""Environments in this process, in two worker processes and on two Ray actors: whether episodes are the same, what
killed workers change, and how fast batches are stepped.

    python tests/benchmarks/env_groups.py --write
    python tests/benchmarks/env_groups.py --write --only speed

Pieces are measured apart and kept in docs/benchmarks/env_groups.json; the page shows what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from report import PAGES, finish, parse_write, table

from vlgym.env_groups import open_group
from vlgym.policies import OraclePolicy, RandomPolicy
from vlgym.registry import get_registry
from vlgym.rollout import Runner
from vlgym.types import Reply, StepRecord, Turn

WAYS = ("local", "processes:2", "ray:2")
FAMILIES = (
    "vlgym/NumberLine-v1", "vlgym/EZPoints-v1", "vlgym/Blackjack-v0", "vlgym/SeeCount-v0", "vlgym/OneRoomS6Fast-v1",
    "vlgym/Sokoban-v0", "vlgym/TicTacToe-v0", "vlgym/Hanabi-v0", "vlgym/ALFWorld-v0", "vlgym/WebShop-v0",
    "vlgym/Football-v1", "vlgym/WebUI-v1",
)  # fmt: skip
EPISODES = 20
BATCHES = (("vlgym/WebShop-v0", 16, 6), ("vlgym/Football-v1", 16, 6), ("vlgym/OneRoom-v0", 64, 8))
KILLS = {"processes:2": 50, "ray:2": 20}
OVERHEAD = "vlgym/NumberLine-v0"
ROUNDS = 3
RESULTS = PAGES / "env_groups.json"


class Mixed:
    """Random legal replies, and the oracle's at every third turn."""

    name = "mixed"

    def reply(self, turns: list[Turn]) -> list[Reply]:
        """Answer each."""
        oracle, chance = OraclePolicy(fallback=True), RandomPolicy()
        return [(oracle if turn.turn % 3 == 2 else chance).reply([turn])[0] for turn in turns]


def fingerprint(records: list[StepRecord]) -> str:
    """A hash of all that a runner recorded of an episode, prompts and pictures included."""
    found = hashlib.sha256()
    for r in records:
        flags = (r.seed, r.turn, r.text, r.reply, r.actions, r.parse, r.reward, r.terminated, r.truncated, r.invalid)
        found.update(repr((*flags, r.success, r.score, r.span)).encode())
        for message in (*r.messages, *(r.final_messages or [])):
            for part in message["content"]:
                found.update(part["text"].encode() if part["type"] == "text" else part["image"].tobytes())
    return found.hexdigest()[:16]


def play(way: str, env_id: str, episodes: int, envs: int, kills: int = 0) -> tuple[dict[int, str], int, int, float]:
    """Play episodes; return their fingerprints, how many were counted, how many workers were lost, and seconds."""
    group = open_group(way, envs=envs, tell=lambda line: None)
    rng, begun, counted = random.Random(0), time.perf_counter(), 0
    runner = Runner([group.make(env_id) for _ in range(envs)], episodes=episodes)
    found: dict[int, str] = {}
    open_rows: dict[int, list[StepRecord]] = {}
    try:
        while not runner.done:
            if kills and group.lost < kills and rng.random() < 0.6:
                with suppress(ProcessLookupError, IndexError):
                    os.kill(rng.choice(group.pids), signal.SIGKILL)
            for record in runner.step(Mixed()):
                open_rows.setdefault(record.episode, []).append(record)
                if record.terminated or record.truncated:
                    found[record.episode] = fingerprint(open_rows.pop(record.episode))
                    counted += 1
    finally:
        runner.close()
        group.close()
    return found, counted, getattr(group, "lost", 0), time.perf_counter() - begun


def compare_families(ids: Sequence[str] = FAMILIES) -> dict[str, Any]:
    """Twenty episodes of each family in each way."""
    rows: dict[str, Any] = {}
    for env_id in ids:
        if env_id not in get_registry().specs:
            continue
        reference, *_ = play("local", env_id, EPISODES, 4)
        rows[env_id] = {}
        for way in WAYS[1:]:
            found, counted, _, _ = play(way, env_id, EPISODES, 4)
            same = sum(found.get(number) == reference[number] for number in reference)
            rows[env_id][way] = [same, counted]
            print(env_id, way, rows[env_id][way], flush=True)
    return rows


def kill_workers() -> dict[str, Any]:
    """Workers killed at random moments."""
    rows: dict[str, Any] = {}
    reference, *_ = play("local", OVERHEAD, 400, 8)
    for way, kills in KILLS.items():
        episodes = 400
        found, counted, lost, seconds = play(way, OVERHEAD, episodes, 8, kills)
        same = sum(found.get(number) == reference[number] for number in reference)
        rows[way] = {"lost": lost, "episodes": counted, "same": same, "of": len(reference), "seconds": seconds}
        print(way, rows[way], flush=True)
    return rows


def count_steps(way: str, env_id: str, envs: int, steps: int, **kwargs: Any) -> tuple[float, float]:
    """Steps per second of a batch after one step, and the load of the machine then."""
    group = open_group(way, envs=envs, limit=600)
    runner = Runner([group.make(env_id, **kwargs) for _ in range(envs)])
    policy = RandomPolicy()
    try:
        runner.step(policy)
        begun = time.perf_counter()
        for _ in range(steps):
            runner.step(policy)
        return envs * steps / (time.perf_counter() - begun), os.getloadavg()[0]
    finally:
        runner.close()
        group.close()


def measure_speed() -> dict[str, Any]:
    """Batch steps/s, in rounds that take turns."""
    rows: dict[str, Any] = {}
    for env_id, envs, steps in BATCHES:
        told: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way in WAYS:
                told[way].append(count_steps(way, env_id, envs, steps))
                print(env_id, way, told[way][-1], flush=True)
        rows[f"{envs} {env_id}"] = {way: [list(pair) for pair in pairs] for way, pairs in told.items()}
    return rows


def measure_overhead() -> dict[str, Any]:
    """What a step takes with a picture of 336 x 336 pixels, alone and in a batch of 16."""
    rows: dict[str, Any] = {}
    for envs, steps in ((1, 300), (16, 40)):
        told: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for way in ("local", "processes:1", "ray:1"):
                speed, _ = count_steps(way, OVERHEAD, envs, steps, image_size=(336, 336))
                told.setdefault(way, []).append(1000 / speed)
        rows[str(envs)] = told
        print(envs, told, flush=True)
    return rows


PIECES: dict[str, Callable[[], dict[str, Any]]] = {
    "same": compare_families,
    "kills": kill_workers,
    "speed": measure_speed,
    "overhead": measure_overhead,
}


def write_page(results: dict[str, Any]) -> str:
    """The page's text."""
    parts = []
    if rows := results.get("same"):
        lines = [[env_id, *(f"{same} of {count}" for same, count in ways.values())] for env_id, ways in rows.items()]
        parts.append(
            f"## The same episodes\n\n{EPISODES} episodes of each, random legal replies with the oracle's at every "
            "third turn, 4 environments; how many are the same as in one process, in all records.\n\n"
            + table(["environment", "two processes", "two Ray actors"], lines)
        )
    if rows := results.get("kills"):
        lines = [
            [way, row["lost"], row["episodes"], f"{row['same']} of {row['of']}", f"{row['seconds']:.0f} s"]
            for way, row in rows.items()
        ]
        parts.append(
            f"## Workers killed at random moments\n\n{OVERHEAD}, 8 environments, SIGKILL.\n\n"
            + table(["where", "workers lost", "episodes counted", "same as undisturbed", "time"], lines)
        )
    if rows := results.get("speed"):
        lines = [
            [batch, *(_spread([speed for speed, _ in pairs]) for pairs in ways.values())]
            for batch, ways in rows.items()
        ]
        loads = [load for ways in rows.values() for pairs in ways.values() for _, load in pairs]
        parts.append(
            f"## Steps per second of a batch\n\nRandom policy; median, least and most of {ROUNDS} rounds that take "
            f"turns. The machine was shared: its load average was {min(loads):.1f} to {max(loads):.1f} while this ran. "
            "A second process often had no processor of its own; differences within the spread mean nothing.\n\n"
            + table(["batch", *WAYS], lines)
        )
    if rows := results.get("overhead"):
        lines = [[envs, *(f"{statistics.median(times):.2f}" for times in told.values())] for envs, told in rows.items()]
        parts.append(
            "## What a step takes\n\nMilliseconds per step of "
            f"{OVERHEAD} with a picture of 336 x 336 pixels (339 kB), drawn and sent, median of {ROUNDS} rounds; in "
            "batches of so many environments on one worker.\n\n"
            + table(["environments", "local", "one process", "one Ray actor"], lines)
        )
    return "\n\n".join(parts)


def _spread(found: Sequence[float]) -> str:
    return f"{statistics.median(found):.0f} ({min(found):.0f} to {max(found):.0f})"


def main() -> None:
    """Measure the pieces that were asked for."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        default=",".join(PIECES),
        help="pieces to measure: same, kills, speed, overhead; empty: only write the page",
    )
    parser.add_argument("--ids", help="compare these environments alone, beside what is there already")
    chosen = parse_write(__doc__ or "", parser)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for piece in filter(None, chosen.only.split(",")):
        if piece == "same" and chosen.ids:
            results[piece] = {**results.get(piece, {}), **compare_families(chosen.ids.split(","))}
        else:
            results[piece] = PIECES[piece]()
        if chosen.write:
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    title = "Environments elsewhere: processes and Ray"
    finish("env_groups", title, write_page(results), ["vlgym", "ray", "numpy"], chosen.write)


if __name__ == "__main__":
    main()
