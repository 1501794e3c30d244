"""What a collector keeps between rollouts comes back, and no episode is played twice after the processes changed."""

from __future__ import annotations

import json

from stage import on_stage

from baselines import loop, vldac
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


def test_in_another_number_of_processes_new_episodes_come_after_all_that_were_begun():
    collector = on_stage(vldac, num_envs=3).collector
    state = collector.get_state()
    for last, first in ((2, 3), (3, 6), (5, 6), (6, 9)):
        for slot, episode in zip(state["runners"][0]["slots"], (last - 1, last, 0), strict=True):
            slot["episode"] = episode
        collector.runners[0].restart(0)  # as it was made
        collector.open_returns = [1.0, 1.0, 1.0]
        collector.rearrange([state, collector.get_state() | {"runners": []}])
        assert [slot.episode for slot in collector.runners[0].slots] == [first, first + 1, first + 2]
        assert collector.open_returns == [0.0, 0.0, 0.0]  # of episodes that were broken off


def test_groups_go_on_with_the_next_starts():
    collector = on_stage(loop, num_envs=4, group=2).collector
    collector.next = 8
    again = on_stage(loop, num_envs=4, group=2).collector
    again.set_state(json.loads(json.dumps(collector.get_state())))
    assert again.next == 8
