"""The oracles in real worlds."""

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("name", "strayed", "arguments"),
    [
        ("PutNext", 20, {}),
        ("OneRoom", 0, {"domain_rand": True}),
        pytest.param("FourRooms", 20, {}, marks=pytest.mark.exhaustive),
    ],
)
def test_the_oracle_wins_from_wherever_the_agent_has_strayed_to(make, act, name, strayed, arguments):
    env = make(name, seed=0, **arguments)
    wander, ended = np.random.default_rng(0), False
    while not ended:
        action = env.legal_actions()[int(wander.integers(3))] if env.turn < strayed else env.oracle()
        assert action is not None, f"no way after {env.turn} turns"
        _, _, *over, info = act(env, action)
        ended = any(over)
    assert info["success"]


def test_putnext_drops_a_wrong_box_first(make):
    env = make("PutNext", seed=0)
    world = env.world
    world.agent.carrying = next(e for e in world.entities if getattr(e, "color", "") == "blue")
    assert env.oracle() == "drop"
    assert env.state_text() == "You carry the blue box."
