"""Rewards and answers that are none: an environment that pays NaN, a worker that lies, a process whose parent dies."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import Coin, Walk, make_spec

from vlgym.env_groups import wire
from vlgym.env_groups.host import Host
from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import FailedError
from vlgym.play.env_failures import EnvFailures
from vlgym.play.policies import RandomPolicy
from vlgym.play.rollout import Runner
from vlgym.types import Outcome

BAD = (math.nan, math.inf, -math.inf, None, "1", [1.0])


@pytest.mark.parametrize("paid", BAD)
def test_a_reward_that_is_no_finite_number_is_an_error_of_the_environment_at_its_turn(paid: Any) -> None:
    class Broken(Coin):
        def act(self, action: str) -> Outcome:
            return Outcome(paid)

    env = Broken(vlgym_spec=make_spec("vlgym/Coin-v0"))
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"vlgym/Coin-v0, turn 0: the reward is .* no finite number"):
        env.step("<action>heads</action>")


def test_a_broken_reward_is_a_failure_of_its_episode_and_the_others_go_on() -> None:
    class Broken(Walk):
        def act(self, action: str) -> Outcome:
            return Outcome(math.nan)

    def make(index: int) -> Any:
        return (Broken if index else Walk)(vlgym_spec=make_spec("vlgym/Walk-v0"))

    noted: list[Any] = []
    runner = Runner([make(0), make(1)], remake=make, failures=EnvFailures(noted.append))
    runner.step(RandomPolicy())
    assert [failure["env_id"] for failure in noted] == ["vlgym/Walk-v0"]
    assert "no finite number" in str(noted[0])


class Liar:
    """A worker whose answers to one request are changed."""

    def __init__(self, do: str, change: Any) -> None:
        self.name, self.do, self.change = "liar", do, change
        self.host = Host(lambda env_id, **kwargs: Coin(vlgym_spec=make_spec(env_id), **kwargs))
        self.requests: deque[Any] = deque()

    def send(self, frame: bytes) -> None:
        self.requests.append(wire.unpack(frame))

    def flush(self) -> None:
        pass

    def receive(self, limit: float) -> Any:
        request = self.requests.popleft()
        answer = wire.unpack(self.host.write_answer(request))
        if request["do"] == self.do:
            self.change(answer)
        return answer

    def end(self) -> None:
        pass

    def finish(self) -> None:
        pass


def lie(*path: str, value: Any) -> Any:
    """Change an item of an answer."""

    def change(answer: dict[str, Any]) -> None:
        held = answer
        for name in path[:-1]:
            held = held[name]
        held[path[-1]] = value

    return change


GREY = np.full((4, 4, 3), 9, np.uint8)
LIES = [
    ("make", lie("value", value=None)), ("make", lie("value", "parser", value="tag")),
    ("make", lie("value", "parser", "version", value="1")), ("make", lie("value", "parser", "version", value=True)),
    ("make", lie("value", "spec", value=[])), ("make", lie("value", "vlgym", value=None)),
    ("make", lie("error", value="no")), ("make", lie("error", value={"type": 1, "user": True, "line": ""})),
    ("reset", lie("value", value=[])), ("reset", lie("value", "observation", value=None)),
    ("reset", lie("value", "observation", "image", value=GREY.tolist())),
    ("reset", lie("value", "observation", "image", value=GREY.astype(np.float32))),
    ("reset", lie("value", "observation", "image", value=GREY[:, :, 0])),
    ("reset", lie("value", "observation", "image", value=GREY[:0])),
    ("reset", lie("value", "observation", "text", value=7)),
    ("reset", lie("value", "observation", "text", value="x" * 10_000)),
    ("reset", lie("value", "info", value="info")), ("reset", lie("value", "system", value=None)),
    ("reset", lie("value", "legal", value="heads")), ("reset", lie("value", "legal", value=[1])),
    *[("step", lie("value", "reward", value=paid)) for paid in (*BAD, True)],
    ("step", lie("value", "observation", "image", value=GREY)),
    ("step", lie("value", "terminated", value=1)), ("step", lie("value", "truncated", value=None)),
    ("step", lambda answer: answer["value"].update(terminated=True, truncated=True)),
    ("solve", lie("value", value=7)), ("solve", lie("value", value="x" * 200_000)),
    ("think", lie("value", value=None)), ("describe", lie("value", value="x")),
]  # fmt: skip


def use(env: Any) -> None:
    """Ask for everything once."""
    env.reset(seed=1)
    env.step("<action>heads</action>")
    env.solve()
    env.think("heads")
    env.describe()


@pytest.mark.parametrize(("do", "change"), LIES)
def test_a_worker_that_lies_is_given_up_with_one_line(do: str, change: Any) -> None:
    said: list[str] = []
    group = WorkerGroup(lambda index: Liar(do, change), 1, tell=said.append)
    env = group.make("vlgym/Coin-v0")
    with pytest.raises(FailedError, match="wrote something that is no answer") as caught:
        use(env)
    assert "\n" not in str(caught.value)
    assert group.lost == 4


PARENT = """
import subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-c", sys.argv[1]], process_group=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
child.stdin.write(b"{}\\n")
child.stdin.flush()
print(child.pid, child.stdout.readline(), flush=True)
time.sleep(600)
"""
WORKER = """
import os, runpy, socket, sys
from vlgym.env_groups import host, wire

out = os.dup(1)

def step(self, request):
    os.write(out, b"begun\\n")
    while True:
        pass

host.Host.write_answer = step
one, other = socket.socketpair()
one.sendall(wire.pack({"n": 1, "env": 1, "do": "step"}))
sys.argv = ["worker", str(other.detach())]
runpy.run_module("vlgym.env_groups.worker", run_name="__main__", alter_sys=True)
"""


def test_a_process_in_the_middle_of_a_step_ends_with_its_killed_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, WORKER], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, begun = parent.stdout.readline().split(maxsplit=1)
    assert "begun" in begun
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 60
    while is_alive(int(pid)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(int(pid))


def is_alive(pid: int) -> bool:
    """A process that runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
