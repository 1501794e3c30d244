"""State of a collector between rollouts: it comes back, and no episode is played twice after the processes changed."""

from __future__ import annotations

import json

from stage import on_stage

from baselines import vldac
from baselines.learning.rewards import RewardOptions

SHAPED = {"num_envs": 3, "reward": RewardOptions(normalise=True)}


def test_a_collectors_whole_state_comes_back():
    collector = on_stage(vldac, **SHAPED).collector
    collector.rewards(collector.play(2))
    collector.open_returns = [1.5, 0.0, -2.0]
    state = json.loads(json.dumps(collector.get_state()))
    again = on_stage(vldac, **SHAPED).collector
    assert again.get_state() != state
    assert again.get_state()["shaper"] != state["shaper"]
    again.set_state(state)
    assert again.get_state() == state
