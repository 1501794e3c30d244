"""The learner trains on an environment of every family: an update each, warm-started from the
oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import DEVICE
from stage import SMALL

from baselines import vldac
from baselines.learning.warm_start import WarmConfig
from baselines.runs.logs import read_rows
from baselines.vldac import Config

BROWSER = [pytest.mark.xdist_group("browser"), pytest.mark.exhaustive]
CASES = [
    pytest.param("vlgym/Sokoban-v0", ("group=small-v0", "planner=global", "max_turns=4"), id="sokoban"),
    pytest.param("vlgym/TicTacToe-v0", (), id="pettingzoo", marks=pytest.mark.exhaustive),
    pytest.param("vlgym/EZPoints-v0", ("max_turns=4",), id="cards", marks=pytest.mark.exhaustive),
    pytest.param("vlgym/SeeDigit-v0", (), id="sight", marks=pytest.mark.exhaustive),
    pytest.param("vlgym/OneRoom-v0", ("max_turns=4",), id="miniworld", marks=pytest.mark.exhaustive),
    pytest.param("vlgym/Football-v0", ("max_turns=3",), id="football", marks=pytest.mark.exhaustive),
    pytest.param(
        "vlgym/ALFWorld-v0", ("image_size=[112, 112]", "max_turns=4"), id="alfworld", marks=pytest.mark.exhaustive
    ),
    pytest.param("vlgym/WebShop-v0", ("max_turns=4",), id="webshop", marks=BROWSER),
    pytest.param("vlgym/WebUI-v0", ("max_turns=2",), id="webui", marks=BROWSER),
]


@pytest.mark.on_device
@pytest.mark.parametrize(("env_id", "arguments"), CASES)
def test_an_update_runs_and_sampling_agrees_with_scoring(tmp_path, env_id, arguments):
    config = Config(
        **{
            **SMALL, "env": env_id, "env_kwargs": arguments, "updates": 1, "num_envs": 2, "rollout_steps": 2,
            "minibatch": 2, "value_warmup": 0, "eval_episodes": 1, "max_new_tokens": None, "device": DEVICE,
            "warm": WarmConfig(steps=1, samples=8, batch=4, val_episodes=1),
        }
    )  # fmt: skip
    run = vldac.train(replace(config, out=tmp_path / "run"))
    (row,) = read_rows(run.out / "log.jsonl")
    assert (row["env_steps"], row["env/failures"]) == (4, 0)
    assert row["rollout/logp_diff_max"] < (1e-4 if DEVICE == "cpu" else 1e-3)
    assert row["policy/grad_norm"] >= 0
    assert [e["episodes"] for e in run.state.evaluations] == [1, 1]
    assert run.state.warm.longest_reply > 0
