"""Endpoint: replies per second of an evaluation against a server that answers each request in 1.0
s.

    python tests/benchmarks/endpoint.py

The server (`tests/fault_server.py`) is a separate process and decodes every picture. The evaluation
is a real one: environments are drawn, pictures and prompts sent, replies parsed, episodes written
to a folder. With N episodes at once, the ideal is N replies per second. The clock runs from the end
of the third round of replies to the end of the last, whole rounds only: connecting comes before it.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from report import finish, make_parser, table

from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.evaluation.plan import plan_ids
from vlgym.evaluation.run import Watcher, run_evaluation
from vlgym.types import Reply

ENV_ID = "vlgym/NumberLine-v1"
LATENCY, TARGET, SIZES = 1.0, 0.9, (16, 64, 128)
SERVER = Path(__file__).resolve().parents[1] / "fault_server.py"
CONNECTING = 3  # rounds of replies before the clock starts


class EnoughError(Exception):
    """The wanted number of replies was measured."""


class Clock(Watcher):
    """Notes when each reply was used, and ends the evaluation after the wanted number."""

    def __init__(self, enough: int) -> None:
        self.enough, self.times, self.failed = enough, [], 0

    def reply(self, reply: Reply, key: str) -> None:
        self.times.append(time.perf_counter())
        self.failed += reply.usage is None or reply.usage.attempts > 1
        if len(self.times) >= self.enough:
            raise EnoughError


@contextmanager
def serve() -> Iterator[str]:
    """Run the server in a separate process; yield its address."""
    command = [sys.executable, str(SERVER), "--latency", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measure(size: int, rounds: int) -> tuple[float, float]:
    """Return replies per second and the processor's milliseconds per reply, the server's left
    out."""
    clock = Clock(size * (CONNECTING + rounds))
    with serve() as url, tempfile.TemporaryDirectory() as folder:
        policy = OpenAIPolicy("m", base_url=url, concurrency=size)
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
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="how often each size is measured")
    parser.add_argument("--rounds", type=int, default=12, help="measured rounds of replies")
    chosen = parser.parse_args()
    runs: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    for _ in range(chosen.runs):
        for size in SIZES:
            runs[size].append(measure(size, chosen.rounds))
            print(f"{size}: {runs[size][-1][0]:.1f} replies/s", file=sys.stderr)
    rows = []
    for size in SIZES:
        speeds, costs = zip(*runs[size], strict=True)
        middle = statistics.median(speeds)
        shares = [f"{speed * LATENCY / size:.2f}" for speed in (middle, min(speeds), max(speeds))]
        rows.append([size, f"{middle:.1f}", *shares, f"{statistics.median(costs):.1f}"])
    body = (
        f"{ENV_ID} through `vlgym.evaluation.run_evaluation`, records on disk included; {chosen.runs} "
        f"runs of {chosen.rounds} rounds; the server's process runs on the same processor. Ideal: as many "
        f"replies per second as episodes at once. Target: a share of {TARGET:g} at 64.\n\n"
    )
    header = ["episodes at once", "replies/s", "share of the ideal", "lowest", "highest", "processor ms"]
    finish("endpoint", "Endpoint", body + table(header, rows), ["vlgym", "openai", "httpx2"])


if __name__ == "__main__":
    main()
