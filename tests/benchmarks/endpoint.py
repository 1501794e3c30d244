"""Endpoint: replies per second of an evaluation against a server that answers each request in 1.0 s.

    python tests/benchmarks/endpoint.py

The server (`tests/fault_server.py`) is a separate process and decodes every picture. The evaluation is a real one:
environments are drawn, pictures and prompts sent, replies parsed, episodes written to a folder. With N episodes at
once, the ideal is N replies per second. The clock runs from the end of the third round of replies to the end of the
last, whole rounds only: connecting comes before it.

A bare client sends one ready-made request again and again over N sockets, and does nothing else. It is measured in turn
with the evaluation: its distance from the ideal is the server's and the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from report import finish, parse, table

from vlgym.endpoint.policy import OpenAIPolicy
from vlgym.env.rendering import data_url
from vlgym.evaluation.plan import plan_ids
from vlgym.evaluation.run import Watcher, run_evaluation
from vlgym.registry.making import make
from vlgym.types import Reply

ENV_ID = "vlgym/NumberLine-v1"
LATENCY, TARGET = 1.0, 0.9
SIZES = (16, 64, 128)
SERVER = Path(__file__).resolve().parents[1] / "fault_server.py"
CONNECTING = 3
"""Rounds of replies before the clock starts."""


class EnoughError(Exception):
    """The wanted number of replies was measured."""


class Clock(Watcher):
    """Notes when each reply was used, and ends the evaluation after the wanted number."""

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
    """Run the server in a separate process; yield its address."""
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


def measure_bare(size: int, rounds: int) -> float:
    """Return replies per second of a client that only sends and reads bytes."""
    content = [{"type": "image_url", "image_url": {"url": data_url(make(ENV_ID).reset(seed=0)[0]["image"])}},
               {"type": "text", "text": "Legal actions: -, +"}]  # fmt: skip
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    times: list[float] = []

    async def ask(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(CONNECTING + rounds):
            writer.write(head + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            await reader.readexactly(int(lines[-3].removeprefix("Content-Length: ")))
            times.append(time.perf_counter())
        writer.close()

    async def ask_all(port: int) -> None:
        await asyncio.gather(*(ask(port) for _ in range(size)))

    with serve() as url:
        asyncio.run(ask_all(urlsplit(url).port or 0))
    return size * rounds / (times[-1] - times[size * CONNECTING - 1])


def main() -> None:
    """Measure every size some times and report medians."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="how often each size is measured")
    parser.add_argument("--rounds", type=int, default=12, help="replies of each episode's place that are measured")
    chosen = parse(__doc__ or "", parser)
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    bare: dict[int, list[float]] = {size: [] for size in SIZES}
    loads = [os.getloadavg()[0]]
    for _ in range(chosen.runs):
        for size in SIZES:
            found[size].append(measure(size, chosen.rounds))
            bare[size].append(measure_bare(size, chosen.rounds))
            print(f"{size}: {found[size][-1][0]:.1f} replies/s, bare {bare[size][-1]:.1f}", file=sys.stderr)
        loads.append(os.getloadavg()[0])
    rows = []
    for size in SIZES:
        speeds = [speed * LATENCY / size for speed, _ in found[size]]
        rows.append(
            [
                size, f"{statistics.median(speeds) * size / LATENCY:.1f}", f"{statistics.median(speeds):.2f}",
                f"{min(speeds):.2f}", f"{max(speeds):.2f}",
                f"{statistics.median(bare[size]) * LATENCY / size:.2f}",
                f"{statistics.median(cost for _, cost in found[size]):.1f}",
            ]
        )  # fmt: skip
    body = (
        f"{ENV_ID} through `vlgym.evaluation.run_evaluation`, records on disk included; {chosen.runs} runs of "
        f"{chosen.rounds} rounds; the server's process runs on the same processor. Ideal: as many replies per "
        f"second as episodes at once. Target: a share of {TARGET:g} at 64. Load average of the machine meanwhile, "
        f"this benchmark and whatever else ran included: {min(loads):.1f} to {max(loads):.1f}. The bare client sends a "
        "ready-made request over as many sockets and reads the answer, and nothing else.\n\n"
    )
    header = ["episodes at once", "replies/s", "share of the ideal", "lowest", "highest", "bare client's share",
              "processor ms per reply"]  # fmt: skip
    finish("endpoint", "Endpoint", body + table(header, rows), ["vlgym", "openai", "httpx2"])


if __name__ == "__main__":
    main()
