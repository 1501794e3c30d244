"""State of a collector between rollouts: it comes back, and no episode is played twice after the processes changed."""

from __future__ import annotations

import json

from stage import on_stage

from baselines import vldac


def test_a_collectors_whole_state_comes_back():
    collector = on_stage(vldac, num_envs=3).collector
    collector.play(2)
    collector.open_returns = [1.5, 0.0, -2.0]
    state = json.loads(json.dumps(collector.get_state()))
    again = on_stage(vldac, num_envs=3).collector
    assert again.get_state() != state
    again.set_state(state)
    assert again.get_state() == state
