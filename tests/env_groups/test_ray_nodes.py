"""Ray actors whose node is lost or that find no processor, on a real and a pretended cluster."""

import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from env_groups.test_env_groups import PretendLink

from vlgym.env_groups import on_ray, workers
from vlgym.env_groups.host import Host
from vlgym.env_groups.workers import WorkerGroup
from vlgym.errors import FailedError

NODES = """
import json, threading
import ray
from ray.cluster_utils import Cluster
from vlgym import make
from vlgym.env_groups import on_ray, open_group

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
spare = cluster.add_node(num_cpus=1, resources={"spare": 1})
lost = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False)

@ray.remote(num_cpus=1, resources={"spare": 1})
class Busy:
    pass

busy, told = Busy.remote(), []
ray.get(busy.__ray_ready__.remote())
on_ray.SILENT_S = 2.0
group = open_group("ray:2", limit=20, tell=told.append)
envs = [group.make("vlgym/Sokoban-v0", max_turns=500) for _ in range(2)]
twin = make("vlgym/Sokoban-v0", max_turns=500)
for env in (*envs, twin):
    env.reset(seed=3)
for turn in range(200):
    for env in (*envs, twin):
        env.step("nothing")
cluster.remove_node(lost, allow_graceful=False)
threading.Timer(8, ray.kill, (busy,)).start()
texts = {env.step("nothing")[0]["text"] for env in (*envs, twin)}
print("TOLD " + json.dumps([*told, f"{len(texts)} text, {group.lost} lost"]), flush=True)
group.close()
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.exhaustive  # Ray takes half a minute to start
def test_the_worker_of_a_killed_node_waits_once_for_a_processor_and_plays_on() -> None:
    done = subprocess.run([sys.executable, "-c", NODES], capture_output=True, text=True, timeout=200)
    lines = re.findall(r"^TOLD \[(.*)\]$", done.stdout, re.MULTILINE)
    assert lines, done.stderr[-2000:]
    due = r'".* was given up: .*", ".* is waiting for a free processor, for at most \d+ s\.", "1 text, 1 lost"'
    assert re.fullmatch(due, lines[0])


class FullCluster:
    """Ray without a free processor: no actor starts."""

    exceptions = SimpleNamespace(GetTimeoutError=TimeoutError, RayError=OSError)

    def __init__(self) -> None:
        self.waited: list[float] = []

    def remote(self, *_: Any, **__: Any) -> Any:
        call = SimpleNamespace(remote=lambda *frames: frames)
        actor = SimpleNamespace(_actor_id=b"\1\2\3\4", __ray_ready__=call, answer=call, close=call)
        return lambda cls: SimpleNamespace(remote=lambda: actor)

    def wait(self, calls: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        self.waited.append(timeout)
        return [], calls

    def kill(self, actor: Any, no_restart: bool) -> None:
        """There is nothing to kill."""


def test_without_a_free_processor_a_group_waits_once_and_fails_in_one_line() -> None:
    ray, lines = FullCluster(), list[str]()
    group = WorkerGroup(lambda index: on_ray.RayLink(index, ray, lines.append), 2, limit=1)
    envs = [group.make("vlgym/NumberLine-v1") for _ in range(3)]
    with pytest.raises(
        FailedError, match=r"^No processor .* worker 0 \(Ray actor 01020304\) within 300 s\. Add a node"
    ):
        envs[0].reset(seed=1)
    assert lines == ["environment worker 0 (Ray actor 01020304) is waiting for a free processor, for at most 300 s."]
    for env in envs:
        env.close()
    assert ray.waited[:2] == [on_ray.SILENT_S, workers.START]
    assert max(ray.waited[2:], default=0) <= 5


class Counting(PretendLink):
    """A worker that keeps how many requests it was asked before each answer, and is lost at the 40th turn."""

    def __init__(self, counts: list[int], dies: bool) -> None:
        super().__init__(0, lambda request: "before" if dies and request["n"] > 40 else "")
        self.host, self.counts = Host(), counts

    def receive(self, limit: float) -> Any:
        self.counts.append(len(self.requests))
        return super().receive(limit)


def test_an_episode_is_replayed_step_by_step_so_that_a_step_has_the_time_of_one_answer() -> None:
    counts: list[list[int]] = []

    def start(index: int) -> Counting:
        counts.append([])
        return Counting(counts[-1], dies=len(counts) == 1)

    group = WorkerGroup(start, 1)
    envs = [group.make("vlgym/Sokoban-v0", max_turns=100) for _ in range(2)]
    for env in envs:
        env.reset(seed=2)
    for _ in range(30):
        for env in envs:
            env.step("nothing")
    assert len(counts) == 2
    assert len(counts[1]) > 40
    assert max(counts[1]) == 2
