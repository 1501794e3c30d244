"""VL-DAC's setting: what `compat="vldac"` changes, and that other arguments given with it win."""

from importlib import import_module

import gymnasium
import numpy as np
import pytest


def test_the_preset_has_128_turns_at_most_four_images_and_a_random_action_for_what_cannot_be_read(make):
    env = make("OneRoom", compat="vldac")
    assert (env.max_turns, env.invalid_action) == (128, "published")
    assert (env.vlgym_spec.history_turns, env.vlgym_spec.history_images) == (3, 4)
    assert make("MazeS2", compat="vldac", max_turns=300).max_turns == 96
    own = make("OneRoom", compat="vldac", max_turns=7, invalid_action="noop")
    assert (own.max_turns, own.invalid_action) == (7, "noop")
    plain = make("OneRoom")
    assert (plain.max_turns, plain.invalid_action) == (180, "noop")
    assert (plain.vlgym_spec.history_turns, plain.vlgym_spec.history_images) == (0, 1)


@pytest.mark.parametrize(
    "name", ["OneRoom", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("MazeS2", "WallGap"))]
)
def test_limit_and_pay_are_those_of_a_limit_of_128_on_top_of_miniworlds(make, name):
    env = make(name, compat="vldac")
    env.reset(seed=1)
    raw = getattr(import_module("miniworld.envs"), name)(obs_width=16, obs_height=16)
    limit = raw.max_episode_steps
    theirs = gymnasium.wrappers.TimeLimit(raw, 128)
    for plan in ("oracle", "idle"):
        env.reset(seed=1)
        theirs.reset(seed=1)
        paid, ended = [], (False, False)
        while not any(ended):
            reply = env.solve() if plan == "oracle" and env.turn > 9 else env.parser.format(["turn left"])
            _, reward, *ended, info = env.step(reply)
            (action,) = info["vlgym"]["actions"]
            _, expected, *over, _ = theirs.step(env.actions[action])
            paid.append(reward)
            assert ended == over
            assert reward == (expected if expected or not any(over) else -1.0)
        if plan == "oracle":
            assert paid[-1] == pytest.approx(1 - 0.2 * len(paid) / limit)
        else:
            assert (len(paid), paid[-1]) == (min(128, limit), -1.0)
    theirs.close()


def test_the_street_ends_sidewalk_without_reward_and_pays_minus_one_in_vldacs_setting(act, make):
    for compat, pay in ((None, 0.0), ("vldac", -1.0)):
        env = make("Sidewalk", seed=1, compat=compat)
        env.world.agent.pos = np.array([env.world.street.min_x - 0.05, 0.0, 3.0])
        env.world.agent.dir = 0.0
        _, reward, terminated, _, info = act(env, "move forward")
        assert (reward, terminated, info["success"]) == (pay, True, False)
