"""verifiers v1: `vf-eval` plays episodes against a fake endpoint; rewards are those of a replay."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from fault_server import FaultServer

from vlgym.env.seeding import episode_seed
from vlgym.integrations.turn_rows import make_row

pytest.importorskip("verifiers", reason="needs an environment of its own: make trainers")

PACKAGE = Path(__file__).parents[2] / "hub" / "verifiers"
"""Found on the path, as if it were installed."""
EPISODES, TURNS = 3, 4
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("env_id", "further"),
    [("vlgym/NumberLine-v1", {}), ("vlgym/CanaryMemory-v0", {}), ("vlgym/Sokoban-v0", {"system_turn": True})],
)
def test_vf_eval_plays_the_episodes_of_a_replay(env_id, further, tmp_path, record_property):
    arguments = {"max_turns": TURNS, **further}
    with FaultServer() as server:
        (tmp_path / "eval.toml").write_text(
            f'model = "any"\n[client]\nbase_url = "{server.url}"\n[env.taskset]\nid = "vlgym-episodes"\n'
            f'env = "{env_id}"\nepisodes = {EPISODES}\n[env.taskset.arguments]\n'
            + "".join(f"{name} = {json.dumps(value)}\n" for name, value in arguments.items())
        )
        variables = {
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),  # its chat program is started by uv
        }
        done = subprocess.run(
            [str(BIN / "vf-eval"), "@", "eval.toml", "--no-push", "-o", "out"], cwd=tmp_path,
            env={**os.environ, **variables}, capture_output=True, text=True, timeout=500,
        )  # fmt: skip
        requests = server.requests
    (log,) = (tmp_path / "out").glob("*/traces.jsonl")
    traces = {
        trace["task"]["data"]["seed"]: trace
        for line in log.read_text().splitlines() for trace in json.loads(line)["traces"]
    }  # fmt: skip
    seeds = {episode_seed(env_id, "train", number) for number in range(EPISODES)}
    assert set(traces) == seeds, done.stderr[-2000:]
    turns = 0
    for seed, trace in traces.items():
        assert trace["errors"] == []
        env = gymnasium.make(env_id, disable_env_checker=True, **arguments)
        rows = trace["info"]["turns"]
        observation, info = env.reset(seed=seed)
        total, pictures, texts = 0.0, [], [observation["text"]]
        for reply, row in zip(trace["info"]["replies"], rows, strict=True):
            pictures.append(observation["image"])
            observation, reward, terminated, truncated, info = env.step(reply)
            texts.append(info["vlgym"]["turn_text"])
            total, turns = total + float(reward), turns + 1
            assert row == make_row(reward, info)
        assert terminated or truncated
        assert trace["rewards"] == {"return": {"score": total, "weight": 1.0}}
        assert trace["metrics"]["success"] == float(info["success"])
        assert trace["metrics"]["invalid_turns"] == sum(row["invalid"] for row in rows)
        (last,) = (
            each for each in requests
            if len(each.pictures) == len(pictures) and all(map(np.array_equal, each.pictures, pictures))
        )  # fmt: skip
        prompts = [m["content"][1]["text"] for m in last.body["messages"] if m["role"] == "user"]
        assert prompts == texts[:-1]
    record_property("comparison", f"{env_id}: {EPISODES} episodes, {turns} turns, 0 differences")
