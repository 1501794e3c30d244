"""Bad answers and orphans: a worker that lies, a learner that is killed."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from commands import is_running, wait_until
from env_groups.test_env_groups import PretendLink

from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import FailedError

BAD = (math.nan, math.inf, -math.inf, None, "1", [1.0])


def lie(*path: str, value: Any) -> Any:
    """Return what changes an item of an answer."""

    def change(answer: dict[str, Any]) -> None:
        for name in path[:-1]:
            answer = answer[name]
        answer[path[-1]] = value

    return change


def info(*path: str, value: Any) -> Any:
    return lie("value", "info", *path, value=value)


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
    ("step", info("success", value="yes")), ("step", info("invalid_action", value=0)),
    ("step", info("score", value=math.nan)), ("step", info("score", value=np.float32("nan"))),
    ("step", info("score", value="9")), ("step", info("seat", value=[])), ("step", info("vlgym", value=None)),
    ("step", info("vlgym", "span", value=(1, "x"))), ("step", info("vlgym", "actions", value=[1])),
    ("step", info("vlgym", "legal_actions", value=[None])), ("step", info("vlgym", "more", value=1)),
    ("step", lie("value", "more", value=1)), ("step", lie("value", "observation", "more", value=1)),
    ("step", info("more", value=np.zeros(3_000_000, np.uint8))),
    ("solve", lie("more", value=1)), ("solve", lie("error", value={"type": "KeyError", "user": False, "line": ""})),
]  # fmt: skip


class Liar(PretendLink):
    """A worker that changes its answers to one kind of request."""

    def __init__(self, do: str, change: Any) -> None:
        super().__init__(0)
        self.do, self.change = do, change

    def receive(self, limit: float) -> Any:
        do, answer = self.requests[0]["do"], super().receive(limit)
        if do == self.do:
            self.change(answer)
        return answer


@pytest.mark.parametrize(("do", "change"), LIES)
def test_a_worker_that_lies_is_given_up_with_one_line(do: str, change: Any) -> None:
    group = WorkerGroup(lambda index: Liar(do, change), 1)
    env = group.make("vlgym/Coin-v0")
    with pytest.raises(FailedError, match="wrote something that is no answer") as caught:
        env.reset(seed=1), env.step("<action>heads</action>"), env.solve(), env.think("heads"), env.describe()
    assert "\n" not in str(caught.value)
    assert group.lost == 4


PARENT = """
import sys, time
from vlgym.env_groups.processes import ProcessLink
from vlgym.env_groups.wire import pack
link = ProcessLink(0, [sys.executable, "-c", sys.argv[1]])
link.send(pack({"n": 1, "env": 1, "do": "step"}))
print(link.pid, link._socket.recv(5), flush=True)
time.sleep(600)
"""
WORKER = """
import os, runpy, sys
from vlgym.env_groups import host

def step(self, request):
    os.write(int(sys.argv[1]), b"begun")
    while True:
        pass

host.Host.write_answer = step
runpy.run_module("vlgym.env_groups.worker", run_name="__main__", alter_sys=True)
"""


def test_a_process_in_the_middle_of_a_step_ends_with_its_killed_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, WORKER], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, begun = parent.stdout.readline().split()
    assert "begun" in begun
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not is_running(int(pid)))
