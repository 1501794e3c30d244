"""Endpoint: replies per second of an evaluation against a server that answers each request in 1.0 s.

    python tests/benchmarks/endpoint_speed.py --write

The server (`tests/fault_server.py`) is a process of its own and decodes every picture. The evaluation is a real one:
environments are drawn, pictures and prompts sent, replies parsed, episodes written to a folder. Where so many episodes
are played at once, the ideal is so many replies per second. The clock runs from the end of the third round of replies
to the end of the last, whole rounds only: connecting comes before it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from report import finish, parse_write, table

from vlgym.endpoint import make_openai
from vlgym.evaluation.plan import plan_ids
from vlgym.evaluation.run import Unwatched, run_evaluation
from vlgym.types import Reply

ENV_ID = "vlgym/NumberLine-v0"
LATENCY, TARGET = 1.0, 0.9
SIZES = (16, 64, 128)
SERVER = Path(__file__).resolve().parents[1] / "fault_server.py"
CONNECTING = 3
"""Rounds of replies before the clock starts."""


class EnoughError(Exception):
    """So many replies were measured."""


class Clock(Unwatched):
    """Notes when each reply was used, and ends the evaluation after so many."""

    def __init__(self, enough: int) -> None:
        self.enough, self.times, self.failed = enough, [], 0

    def reply(self, reply: Reply, key: str) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())
        self.failed += reply.usage is None or reply.usage.attempts > 1
        if len(self.times) >= self.enough:
            raise EnoughError


@contextmanager
def serve() -> Iterator[str]:
    """Run the server in a process of its own; yield its address."""
    command = [sys.executable, str(SERVER), "--latency", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measure(size: int, rounds: int) -> tuple[float, float]:
    """Return replies per second and the processor's milliseconds per reply, the server's left out."""
    clock = Clock(size * (CONNECTING + rounds))
    with serve() as url, tempfile.TemporaryDirectory() as folder:
        policy = make_openai("m", base_url=url, concurrency=size)
        try:
            used = time.process_time()
            run_evaluation(plan_ids([ENV_ID], episodes=clock.enough), policy, Path(folder) / "run", watcher=clock)
        except EnoughError:
            used = time.process_time() - used
        finally:
            policy.close()
    if clock.failed:
        raise SystemExit(f"{clock.failed} replies needed another attempt: this measures no speed")
    seconds = clock.times[-1] - clock.times[size * CONNECTING - 1]
    return size * rounds / seconds, 1000 * used / len(clock.times)


def main() -> None:
    """Measure every size some times and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how often each size is measured")
    parser.add_argument("--rounds", type=int, default=12, help="replies of each episode's place that are measured")
    chosen = parse_write(__doc__ or "", parser)
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    loads = [os.getloadavg()[0]]
    for _ in range(chosen.runs):
        for size in SIZES:
            found[size].append(measure(size, chosen.rounds))
            print(f"{size}: {found[size][-1][0]:.1f} replies/s", file=sys.stderr)
        loads.append(os.getloadavg()[0])
    rows = []
    for size in SIZES:
        speeds = [speed * LATENCY / size for speed, _ in found[size]]
        rows.append(
            [
                size, f"{statistics.median(speeds) * size / LATENCY:.1f}", f"{statistics.median(speeds):.2f}",
                f"{min(speeds):.2f}", f"{max(speeds):.2f}",
                f"{statistics.median(cost for _, cost in found[size]):.1f}",
            ]
        )  # fmt: skip
    body = (
        f"{ENV_ID} through `vlgym.evaluation.run_evaluation`, records on disk included; {chosen.runs} runs of "
        f"{chosen.rounds} rounds; the server's process beside it on the same processor. Ideal: as many replies per "
        f"second as episodes at once. Target: a share of {TARGET:g} at 64. Load average of the machine meanwhile, "
        f"this benchmark and whatever else ran included: {min(loads):.1f} to {max(loads):.1f}.\n\n"
    )
    header = ["episodes at once", "replies/s", "share of the ideal", "lowest", "highest", "processor ms per reply"]
    finish("endpoint_speed", "Endpoint: speed", body + table(header, rows), ["vlgym", "openai", "httpx2"], chosen.write)


if __name__ == "__main__":
    main()
