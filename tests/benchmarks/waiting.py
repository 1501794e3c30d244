"""Speed of a batch of environments that wait, as for a browser, on two worker processes."""

from __future__ import annotations

import os
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from report import finish, parse

sys.path.append(str(Path(__file__).parent.parent))
from toys import Walk, make_spec

from vlgym.env_groups.host import Host
from vlgym.env_groups.processes import ProcessLink
from vlgym.env_groups.worker import serve_connection
from vlgym.env_groups.workers import WorkerGroup

ENVS, SLEEP_S, WORKERS, ROUNDS = 100, 0.05, 2, 5
ACTION = "<action>left</action>"


class Sleeper(Walk):
    """A walk each step of which waits."""

    def act(self, action: str) -> Any:
        time.sleep(SLEEP_S)
        return super().act(action)


def make_sleeper(env_id: str, **arguments: Any) -> Sleeper:
    """Make a sleeper of any id."""
    return Sleeper(vlgym_spec=make_spec(), **arguments)


def measure(way: str) -> str:
    """Median, least and most milliseconds of a step of the whole batch."""
    command, found = (sys.executable, __file__, way), []
    group = WorkerGroup(lambda index: ProcessLink(index, command), WORKERS)
    try:
        envs = [group.make("vlgym/Walk-v0") for _ in range(ENVS)]
        for env in envs:
            env.reset(seed=0)
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            for env in envs:
                env.send_step(ACTION)
            for env in envs:
                env.step(ACTION)
            found.append(1000 * (time.perf_counter() - begun))
    finally:
        group.close()
    return f"{statistics.median(found):.0f} ({min(found):.0f} to {max(found):.0f})"


def main() -> None:
    """Measure with and without threads; or be a worker."""
    if len(sys.argv) > 2:
        with socket.socket(fileno=int(sys.argv[2])) as learner:
            return serve_connection(learner, Host(make_sleeper, lambda env_id: sys.argv[1] == "threads"))
    parse(__doc__ or "")
    threads, turns = measure("threads"), measure("turns")
    body = (
        f"{ENVS} environments that sleep {1000 * SLEEP_S:.0f} ms take {threads} ms on {WORKERS} workers in threads and "
        f"{turns} ms in turn; load average {os.getloadavg()[0]:.1f}."
    )
    return finish("waiting", "Environments that wait", body, ["vlgym"])


if __name__ == "__main__":
    main()
