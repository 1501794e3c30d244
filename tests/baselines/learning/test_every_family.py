"""The learner trains on an environment of every family: two updates each, warm-started from the oracle."""

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
    pytest.param("vlgym/Sokoban-v0", ("group=small-v0", "planner=global"), id="sokoban"),
    pytest.param("vlgym/TicTacToe-v0", (), id="pettingzoo"),
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
def test_two_updates_run_and_sampling_agrees_with_scoring(tmp_path, env_id, arguments):
    config = Config(
        **{
            **SMALL, "env": env_id, "env_kwargs": arguments, "updates": 2, "num_envs": 2, "rollout_steps": 2,
            "minibatch": 2, "value_warmup": 1, "eval_episodes": 2, "max_new_tokens": None, "device": DEVICE,
            "warm": WarmConfig(steps=2, samples=8, batch=4, check_every=50, val_episodes=1),
        }
    )  # fmt: skip
    run = vldac.train(replace(config, out=tmp_path / "run"))
    rows = read_rows(run.out / "log.jsonl")
    assert [row["env_steps"] for row in rows] == [4, 8]
    assert [row["env/failures"] for row in rows] == [0, 0]
    assert all(row["rollout/logp_diff_max"] < (1e-4 if DEVICE == "cpu" else 1e-3) for row in rows)
    assert rows[1]["policy/grad_norm"] >= 0
    assert [e["episodes"] for e in run.state.evaluations] == [2, 2]
    assert run.state.warm.longest_reply > 0
    assert (run.out / "curve.png").is_file()
