"""Tournament: matches of Kuhn poker between two endpoints that answer each request in 1.0 s.

    python tests/benchmarks/tournament.py

`--latency 4` measures the schedule where a busy machine has too little of a processor for 32 turns a second.

Each endpoint (`tests/fault_server.py`, a process for both) has half of the places. Ideal: all turns times the latency,
over all places. With as many tables as places the last wave leaves places idle: the figures of such schedules are
computed from the lengths of the games that were played, as they came and longest first.
"""

from __future__ import annotations

import argparse
import heapq
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from endpoint import LATENCY, serve
from report import finish, parse, table

from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.games.tournament import Tournament

ENV_ID = "vlgym/KuhnPoker-v0"


def schedule(lengths: Sequence[int], tables: int) -> int:
    """Return when the last game ends if each table takes the next game at the end of one."""
    ends = [0] * tables
    for length in lengths:
        heapq.heappush(ends, heapq.heappop(ends) + length)
    return max(ends)


def main() -> None:
    """Play and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=100)
    parser.add_argument("--places", type=int, default=32)
    parser.add_argument("--latency", type=float, default=LATENCY)
    chosen = parse(__doc__ or "", parser)
    with serve(chosen.latency) as url, tempfile.TemporaryDirectory() as folder:
        players = {name: OpenAIPolicy("m", base_url=url, concurrency=chosen.places // 2) for name in ("one", "other")}
        cup = Tournament(ENV_ID, players, chosen.games // 2, Path(folder) / "cup")
        began, used = time.perf_counter(), time.process_time()
        results = cup.play()
        seconds, used = time.perf_counter() - began, time.process_time() - used
        for policy in players.values():
            policy.close()
    lengths = [result.turns for result in results]
    total = sum(lengths)
    ideal = total * chosen.latency / chosen.places
    rows = [
        [f"measured, {seconds:.1f} s", f"{ideal / seconds:.2f}"],
        *(
            [f"{chosen.places} tables, {name}", f"{total / chosen.places / schedule(games, chosen.places):.2f}"]
            for name, games in (("games as they come", lengths), ("longest first", sorted(lengths, reverse=True)))
        ),
    ]
    body = (
        f"{len(results)} matches of {min(lengths)} to {max(lengths)} turns, {total} in all; {chosen.places} places, "
        f"ideal {ideal:.1f} s; {1000 * used / total:.1f} ms of a processor per turn.\n\n"
        + table(["", "of the ideal"], rows)
    )
    finish("tournament", "Tournament of two endpoints", body, ["vlgym", "httpx2"])


if __name__ == "__main__":
    main()
